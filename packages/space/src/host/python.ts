// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { ensureDebianPackages } from "@space/platform-linux";
import { thisHost } from "./host-fitness.ts";

/** Guests see the host's `/usr`: a Python program in a guest needs the host to have python3. Installs it where that needs no question. */
export async function ensurePython(reason: string): Promise<void> {
  if (thisHost.program("python3") !== undefined) return;
  await ensureDebianPackages([{ name: "python3", command: "python3" }], reason, AbortSignal.timeout(300_000));
}
