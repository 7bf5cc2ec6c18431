// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Clock } from "@space/model";
import { continuationWaitMs } from "@space/wire";
import { InputMemory } from "./input-memory.ts";
import { CallerGone } from "./request-body.ts";
import { RunningTime } from "./running-time.ts";
import { StreamLost } from "./stream-lost.ts";

function setUp(limit: number, isFirst = true) {
  let nowMs = 0;
  const clock: Clock = { wallMs: () => 0, monotonicMs: () => nowMs, after: () => () => undefined };
  const time = new RunningTime(clock);
  const memory = new InputMemory(time, isFirst, limit);
  let written = 0;
  const write = async (): Promise<void> => {
    written += 1;
  };
  return { memory, time, write, written: () => written, pass: (ms: number) => (nowMs += ms) };
}

it("R-22: remembers an input for its time, in which frozen time does not count", async () => {
  const { memory, time, write, written, pass } = setUp(10);
  await memory.once("a", false, write);
  pass(continuationWaitMs - 1);
  time.stop();
  pass(1_000_000);
  await memory.once("a", true, write);
  time.go();
  await memory.once("a", true, write);
  assert.equal(written(), 1);
  pass(1);
  await memory.once("b", false, write);
  assert.equal(memory.size, 1, "what is due is forgotten");
});

it("R-22: where there is no room to remember all, an uncertain input is refused and not written", async () => {
  const { memory, write, written, pass } = setUp(2);
  for (const key of ["a", "b", "c"]) await memory.once(key, false, write);
  assert.equal(memory.size, 2);
  await assert.rejects(memory.once("a", true, write), StreamLost);
  await memory.once("d", false, write);
  assert.equal(written(), 4, "a first presentation is certain");
  pass(continuationWaitMs);
  await memory.once("e", true, write);
  assert.equal(written(), 5);
});

it("R-22, incident 8: what may have been written in an execution before this one is not written in this one", async () => {
  const { memory, write, written, pass } = setUp(2, false);
  await assert.rejects(memory.once("a", true, write), StreamLost);
  await memory.once("b", false, write);
  await memory.once("b", true, write);
  assert.equal(written(), 1);
  pass(continuationWaitMs);
  await memory.once("c", true, write);
  assert.equal(written(), 2, "no gateway waits for so long");
});

it("what waits is never forgotten, and what was given up may come again", async () => {
  const { memory, write, written } = setUp(1);
  let fail: (error: Error) => void = () => undefined;
  const waiting = memory.once(
    "a",
    false,
    () =>
      new Promise((_resolve, reject) => {
        fail = reject;
      }),
  );
  assert.throws(() => memory.once("b", false, write), { code: "resource_exhausted" });
  fail(new CallerGone());
  await assert.rejects(waiting, CallerGone);
  await memory.once("a", true, write);
  assert.equal(written(), 1);
});
