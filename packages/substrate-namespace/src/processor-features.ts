// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";

/** What programs that run here may have found out about the processor, and count on. */
export function processorFeatures(): readonly string[] {
  const line = /^(?:flags|Features)\s*:\s*(.+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? "";
  return line.split(" ").sort();
}
