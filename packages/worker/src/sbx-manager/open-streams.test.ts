// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, parseSandboxId } from "@space/model";
import type { ResetReason } from "@space/wire";
import { type LeasedStream, OpenStreams } from "./open-streams.ts";

const a = parseSandboxId(`i${"a".repeat(20)}`);
const b = parseSandboxId(`i${"b".repeat(20)}`);

/** A clock whose only timers are fired by hand. */
class HandClock implements Clock {
  readonly timers = new Set<() => void>();
  wallMs(): number {
    return 0;
  }
  monotonicMs(): number {
    return 0;
  }
  after(_delayMs: number, callback: () => void): () => void {
    this.timers.add(callback);
    return () => this.timers.delete(callback);
  }
}

function newStream(isShort = true): LeasedStream & { cuts: ResetReason[] } {
  const cuts: ResetReason[] = [];
  return { isShort, cuts, cut: (reason) => cuts.push(reason) };
}

test("R-21: a cut ends every stream of the sandbox before it returns, once, and no other's", () => {
  const streams = new OpenStreams(new HandClock());
  const [one, two, other] = [newStream(), newStream(false), newStream()];
  streams.register(a, one);
  streams.register(a, two);
  streams.register(b, other);
  assert.equal(streams.size, 3);
  assert.equal(streams.cut(a, "epoch-ended"), 2);
  assert.equal(streams.cut(a, "epoch-ended"), 0);
  assert.deepEqual([one.cuts, two.cuts, other.cuts], [["epoch-ended"], ["epoch-ended"], []]);
  streams.cutAll("closing");
  assert.deepEqual(other.cuts, ["closing"]);
  assert.equal(streams.size, 0);
});

test("a drain waits for short streams only, and leaves no timer behind", async () => {
  const clock = new HandClock();
  const streams = new OpenStreams(clock);
  const [short, long] = [newStream(), newStream(false)];
  streams.register(a, long);
  await streams.drained(a, 100);
  streams.register(a, short);
  let drained = false;
  const waiting = streams.drained(a, 100).then(() => {
    drained = true;
  });
  streams.leave(a, long);
  await Promise.resolve();
  assert.equal(drained, false);
  streams.leave(a, short);
  await waiting;
  assert.equal(clock.timers.size, 0);
});

test("a drain ends at its limit, with the stream still open", async () => {
  const clock = new HandClock();
  const streams = new OpenStreams(clock);
  streams.register(a, newStream());
  const waiting = streams.drained(a, 100);
  for (const fire of clock.timers) fire();
  await waiting;
  assert.equal(streams.size, 1);
});
