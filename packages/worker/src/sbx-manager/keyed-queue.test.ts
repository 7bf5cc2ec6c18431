// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedQueue } from "./keyed-queue.ts";

const newQueue = (): KeyedQueue<string> => new KeyedQueue(1, (key) => new RangeError(key));

test("actions of one key run one after the other, of others side by side", async () => {
  const queue = newQueue();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = queue.run("a", async () => {
    seen.push("a1");
    await gate.promise;
    seen.push("a1 ends");
  });
  const second = queue.run("a", async () => {
    seen.push("a2");
  });
  await queue.run("b", async () => {
    seen.push("b");
  });
  gate.resolve();
  await Promise.all([first, second]);
  assert.deepEqual(seen, ["a1", "b", "a1 ends", "a2"]);
});

test("one that fails tells its own caller, and the next one runs", async () => {
  const queue = newQueue();
  const failing = queue.run("a", () => Promise.reject(new Error("mine")));
  const next = queue.run("a", async () => 7);
  await assert.rejects(failing, /mine/);
  assert.equal(await next, 7);
});

test("what exceeds the bound is refused and never runs; there is room again afterwards", async () => {
  const queue = newQueue();
  const gate = Promise.withResolvers<void>();
  const running = [queue.run("a", () => gate.promise), queue.run("a", () => gate.promise)];
  await assert.rejects(
    queue.run("a", async () => assert.fail("it runs")),
    RangeError,
  );
  gate.resolve();
  await Promise.all(running);
  await queue.idle();
  assert.equal(await queue.run("a", async () => "again"), "again");
});
