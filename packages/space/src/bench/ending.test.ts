// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ending, withEnding } from "./ending.ts";

test("what was made last is ended first", async () => {
  const done: string[] = [];
  const ending = new Ending();
  ending.add(() => void done.push("folder"));
  ending.add(async () => done.push("process"));
  await ending.run();
  assert.deepEqual(done, ["process", "folder"]);
});

test("a step that fails keeps no other from happening, and is reported", async () => {
  const done: string[] = [];
  const ending = new Ending();
  ending.add(() => void done.push("folder"));
  ending.add(() => Promise.reject(new Error("stuck")));
  await assert.rejects(ending.run(), /stuck/);
  assert.deepEqual(done, ["folder"]);
});

test("each step happens once, however often the ending is asked for", async () => {
  let times = 0;
  const ending = new Ending();
  ending.add(() => {
    times += 1;
  });
  await Promise.all([ending.run(), ending.run()]);
  assert.equal(times, 1);
});

test("the ending happens when the work fails", async () => {
  let ended = false;
  const work = withEnding((ending) => {
    ending.add(() => {
      ended = true;
    });
    return Promise.reject(new Error("broken"));
  });
  await assert.rejects(work, /broken/);
  assert.equal(ended, true);
});
