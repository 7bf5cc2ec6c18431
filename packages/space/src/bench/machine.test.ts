// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuUse, parseBusySeconds, proportionalBytes } from "./machine.ts";

test("idle time and waiting for disks are not work", () => {
  const stat = "cpu  100 20 30 99999 88888 4 5 6 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
  assert.equal(parseBusySeconds(stat), 1.65);
});

test("a process that is gone uses nothing and holds nothing", () => {
  const nobody = 2 ** 22 + 1; // above the greatest pid of Linux
  assert.deepEqual(cpuUse(nobody), { own: 0, withChildren: 0 });
  assert.equal(proportionalBytes(nobody), undefined);
});

test("this process has used time and holds memory", () => {
  assert.ok(cpuUse(process.pid).own > 0);
  assert.ok((proportionalBytes(process.pid) ?? 0) > 1024 * 1024);
});
