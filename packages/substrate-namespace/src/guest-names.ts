// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";

/** A guest's process as its own people know it, e.g. `python3 (7)`. Undefined when it has ended. */
export function guestName(hostPid: number): string | undefined {
  const status = statusOf(hostPid);
  const name = /^Name:\s*(.*)$/m.exec(status)?.[1];
  const inside = /^NSpid:.*?([0-9]+)$/m.exec(status)?.[1];
  return name === undefined || inside === undefined ? undefined : `${name} (${inside})`;
}

/** The first of these processes that another one traces. */
export function tracedOf(hostPids: readonly number[]): number | undefined {
  return hostPids.find((pid) => /^TracerPid:\s*[1-9]/m.test(statusOf(pid)));
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    return ""; // it has ended
  }
}
