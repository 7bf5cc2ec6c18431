// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { GuestHostKind } from "./guest-host.ts";
import { needsCriu } from "./needs-criu.ts";
import { needsRoot } from "./needs-root.ts";
import { needsRunsc } from "./needs-runsc.ts";

/** A reason to skip the tests of guests started in this way, or false. */
export function needsFor(kind: GuestHostKind): string | false {
  if (kind === "gvisor") return needsRunsc;
  return kind === "criu" ? needsCriu : needsRoot;
}
