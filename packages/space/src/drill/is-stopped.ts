// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";

/** Whether a signal has stopped the process, by the kernel's word: a drill shows that its fault has landed. */
export function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}
