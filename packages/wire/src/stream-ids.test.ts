// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { StreamIds } from "./stream-ids.ts";

const free = (): boolean => false;

it("gives odd ids to the dialling side and even ones from 2 to the other", () => {
  const [dialling, accepting] = [new StreamIds(true), new StreamIds(false)];
  assert.deepEqual([dialling.take(free), dialling.take(free)], [1, 3]);
  assert.deepEqual([accepting.take(free), accepting.take(free)], [2, 4]);
});

it("knows the other side's ids", () => {
  const [dialling, accepting] = [new StreamIds(true), new StreamIds(false)];
  assert.deepEqual(
    [0, 1, 2, 0xffff_fffe, 0xffff_ffff].map((id) => [dialling.isTheirs(id), accepting.isTheirs(id)]),
    [
      [false, false],
      [false, true],
      [true, false],
      [true, false],
      [false, true],
    ],
  );
});

it("comes round after the last id and passes over those still in use", () => {
  const used = new Set([1, 3]);
  const isUsed = (id: number): boolean => used.has(id);
  const dialling = new StreamIds(true, 0xffff_fffd);
  assert.deepEqual(
    [dialling.take(isUsed), dialling.take(isUsed), dialling.take(isUsed)],
    [0xffff_fffd, 0xffff_ffff, 5],
  );
  const accepting = new StreamIds(false, 0xffff_fffe);
  assert.deepEqual([accepting.take(free), accepting.take(free)], [0xffff_fffe, 2]);
});
