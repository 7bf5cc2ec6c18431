// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureDebianPackages, type HostPackage } from "@space/platform-linux";
import type { Ending } from "./ending.ts";

const installLimitMs = 300_000;

/** A folder of the run's own, which others may pass through and nobody may list. Removed at the end. */
export function runFolder(ending: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), "space-bench-"));
  chmodSync(folder, 0o711);
  ending.add(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Installs what the run compares with, where that needs no question. Throws `host/unfit` otherwise. */
export async function ensureTools(packages: readonly HostPackage[]): Promise<void> {
  await ensureDebianPackages(packages, "the benchmark compares with it", AbortSignal.timeout(installLimitMs));
}
