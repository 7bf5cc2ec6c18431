// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { eachLimited } from "./each-limited.ts";

test("runs every item, never more at once than allowed", async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  await eachLimited([1, 2, 3, 4, 5], 2, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    running -= 1;
    done.push(item);
  });
  assert.deepEqual(
    done.toSorted((one, other) => one - other),
    [1, 2, 3, 4, 5],
  );
  assert.equal(most, 2);
});

test("a failure is told after everything that began has ended", async () => {
  const ended: number[] = [];
  const run = eachLimited([1, 2, 3], 2, async (item) => {
    if (item === 1) throw new Error("first");
    await Promise.resolve();
    ended.push(item);
  });
  await assert.rejects(run, /first/);
  assert.deepEqual(ended, [2, 3]);
});

test("nothing to do is done", async () => {
  await eachLimited([], 2, () => Promise.reject(new Error("called")));
});
