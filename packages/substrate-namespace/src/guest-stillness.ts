// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The column of the inode in the kernel's tables of sockets. */
const tables = [
  ["unix", 6],
  ["tcp", 9],
  ["tcp6", 9],
] as const;

/**
 * Whether every socket that the guest's pid 1 holds is of the guest's own network: then nothing of the host's reaches in,
 * and CRIU finds both ends of each connection. The process's own are the only ones that could be others'.
 */
export function isQuiet(pid: number): boolean {
  // First what it holds: what it lets go of meanwhile is then looked for in vain, and it is looked again.
  const held = links(`/proc/${pid}/fd`).flatMap((link) => /^socket:\[([0-9]+)\]$/.exec(link)?.[1] ?? []);
  const own = new Set(tables.flatMap(([table, column]) => inodes(`/proc/${pid}/net/${table}`, column)));
  return held.every((inode) => own.has(inode));
}

/**
 * Tasks of a frozen group that wait inside a call that nothing interrupts: a parent for its child of `vfork` to execute,
 * say. Such a one cannot be saved, and mostly is through when it has run for another moment.
 */
export function midCall(pids: readonly number[]): readonly number[] {
  return pids.filter((pid) => names(`/proc/${pid}/task`).some((task) => stateOf(pid, task) === "D"));
}

function stateOf(pid: number, task: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1");
    return text.charAt(text.lastIndexOf(")") + 2);
  } catch {
    return ""; // it has ended
  }
}

function names(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it has ended
  }
}

function links(folder: string): readonly string[] {
  return names(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return []; // closed since the folder was read
    }
  });
}

function inodes(table: string, column: number): readonly string[] {
  try {
    const [, ...lines] = readFileSync(table, "utf8").split("\n");
    return lines.flatMap((line) => line.trim().split(/\s+/)[column] ?? []);
  } catch {
    return []; // no such protocol in this kernel
  }
}
