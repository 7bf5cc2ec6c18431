// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { libc } from "./libc.ts";

const waitid = libc.func("int waitid(int kind, uint32_t id, _Out_ uint8_t *info, int options)");

const anyChild = 0;
const thisChild = 1;
const withoutWaiting = 1 | 4; // WNOHANG, WEXITED
const leaveIt = 0x100_0000; // WNOWAIT
const infoBytes = 128;
const pidOffset = 16;

/** Processes that Node itself started and waits for. */
export const ownChildren: Set<number> = new Set();

/**
 * Takes the exit of every process that pid 1 has inherited. One that Node waits for ends the round: Node takes it in its
 * own handling of the same signal, and what is behind it sends another.
 */
function reapOrphans(): void {
  for (;;) {
    const info = Buffer.alloc(infoBytes);
    if (Number(waitid(anyChild, 0, info, withoutWaiting | leaveIt)) !== 0) return;
    const pid = info.readInt32LE(pidOffset);
    if (pid === 0 || ownChildren.has(pid)) return;
    waitid(thisChild, pid, info, withoutWaiting);
  }
}

/** From now on no orphan stays a zombie. */
export function adoptOrphans(): void {
  process.on("SIGCHLD", () => setImmediate(reapOrphans));
}
