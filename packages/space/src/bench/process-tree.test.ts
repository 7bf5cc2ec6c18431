// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { descendants, listProcesses } from "./process-tree.ts";

const listed = (pid: number, parent: number) => ({ pid, parent, command: [] });

test("descendants are found through every generation, and nobody else", () => {
  const all = [listed(9, 7), listed(2, 1), listed(7, 2), listed(3, 1), listed(8, 2)];
  assert.deepEqual(
    descendants(2, all).map(({ pid }) => pid),
    [2, 7, 8, 9],
  );
});

test("a process that does not exist has no descendants", () => {
  assert.deepEqual(descendants(5, [listed(2, 1)]), []);
});

test("this process is on the list, with its program", () => {
  const self = listProcesses().find(({ pid }) => pid === process.pid);
  assert.equal(self?.parent, process.ppid);
  assert.ok((self?.command.length ?? 0) > 0);
});
