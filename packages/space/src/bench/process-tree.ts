// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdirSync, readFileSync } from "node:fs";

export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  /** Program and arguments. */
  readonly command: readonly string[];
}

/** Every process of the machine that could be read. */
export function listProcesses(): readonly ListedProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "latin1");
        const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
        const command = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
        return [{ pid: Number(name), parent, command }];
      } catch {
        return []; // it ended while the list was read
      }
    });
}

/** The process itself and everything below it, parents before children. */
export function descendants(root: number, all: readonly ListedProcess[]): readonly ListedProcess[] {
  const found = all.filter(({ pid }) => pid === root);
  for (const { pid } of found) found.push(...all.filter(({ parent }) => parent === pid));
  return found;
}
