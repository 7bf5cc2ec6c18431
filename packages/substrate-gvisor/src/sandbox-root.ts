// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSkeleton } from "@space/substrate-namespace";
import { guestProgramPlace } from "./oci-spec.ts";

/** Makes the read-only root of every guest anew: the namespace driver's, with a place for the guest's program. */
export function buildSandboxRoot(path: string): void {
  rmSync(path, { recursive: true, force: true });
  buildSkeleton(path);
  writeFileSync(join(path, guestProgramPlace), "", { mode: 0o555 });
}
