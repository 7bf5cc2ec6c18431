// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { ensureDebianPackages } from "@space/platform-linux";
import { thisHost } from "./host-fitness.ts";

/** Guests see the host's `/usr`: the demo's Python job needs the host to have python3. Installs it where that needs no question. */
export async function ensurePython(): Promise<void> {
  if (thisHost.program("python3") !== undefined) return;
  await ensureDebianPackages(
    [{ name: "python3", command: "python3" }],
    "the demo's job in the sandbox is a Python program",
    AbortSignal.timeout(300_000),
  );
}
