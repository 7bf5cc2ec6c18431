// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { join } from "node:path";
import { nativeLauncherPath } from "@space/spaced-guest";
import { findRunsc } from "@space/substrate-gvisor";
import { needsRoot } from "./needs-root.ts";

/** The folder of the checkout in which `./space test` puts programs of its own. */
export const runscTools: string = join(import.meta.dirname, "../../../.space/tools");

/** A reason to skip, or false: for tests that start guests under gVisor's kernel. */
export const needsRunsc: string | false =
  needsRoot ||
  (!existsSync(nativeLauncherPath) && "no C compiler built the guest's program") ||
  ((await findRunsc(runscTools)).found === undefined && "there is no usable runsc: ./space doctor --install");
