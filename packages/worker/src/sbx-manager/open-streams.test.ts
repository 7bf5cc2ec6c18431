// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Clock,
  parseDigest,
  parseIdentity,
  parseSandboxId,
  type RuntimeRecord,
  type SandboxId,
} from "@space/model";
import type { ResetReason } from "@space/wire";
import { type LeasedStream, OpenStreams } from "./open-streams.ts";

const a = parseSandboxId(`i${"a".repeat(20)}`);
const b = parseSandboxId(`i${"b".repeat(20)}`);

function recordOf(sandboxId: SandboxId, changes: Partial<RuntimeRecord> = {}): RuntimeRecord {
  const identity = parseIdentity({
    sandboxId,
    generation: "1",
    placement: { workerId: `wrk_${"w".repeat(16)}`, substrate: "namespace" },
    activation: { id: `act_${"b".repeat(26)}`, attempt: 1 },
  });
  const certificateDigest = parseDigest("0".repeat(64));
  const certificate = "";
  const facts = { certificate, certificateDigest, hostBootId: "", evidence: "{}" } as const;
  return { identity, state: "installed", epoch: 1n, ...facts, ...changes };
}

const [recordA, recordB] = [recordOf(a), recordOf(b)];

/** The streams of a store whose records never change. */
function newStreams(clock: Clock = new HandClock()): OpenStreams {
  return new OpenStreams(clock, (sandboxId) => (sandboxId === a ? recordA : recordB));
}

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
  return { isShort, cuts, cut: (reason) => cuts.push(reason), resume: () => undefined };
}

test("R-21: a cut ends every stream of the sandbox before it returns, once, and no other's", () => {
  const streams = newStreams();
  const [one, two, other] = [newStream(), newStream(false), newStream()];
  streams.register(recordA, one);
  streams.register(recordA, two);
  streams.register(recordB, other);
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
  const streams = newStreams(clock);
  const [short, long] = [newStream(), newStream(false)];
  const longLease = streams.register(recordA, long);
  await streams.drained(a, 100);
  const shortLease = streams.register(recordA, short);
  let drained = false;
  const waiting = streams.drained(a, 100).then(() => {
    drained = true;
  });
  streams.leave(longLease, long);
  await Promise.resolve();
  assert.equal(drained, false);
  streams.leave(shortLease, short);
  await waiting;
  assert.equal(clock.timers.size, 0);
});

test("a drain ends at its limit, with the stream still open", async () => {
  const clock = new HandClock();
  const streams = newStreams(clock);
  streams.register(recordA, newStream());
  const waiting = streams.drained(a, 100);
  for (const fire of clock.timers) fire();
  await waiting;
  assert.equal(streams.size, 1);
});

test("R-21: a lease ends with the record's epoch, whoever advanced it, and with the record", () => {
  let record: RuntimeRecord | undefined = recordA;
  const streams = new OpenStreams(new HandClock(), () => record);
  const lease = streams.register(recordA, newStream());
  assert.equal(lease.holds, true);
  record = recordOf(a, { certificate: "reissued" });
  assert.equal(lease.holds, true, "R-18: the same epoch");
  for (const ended of [recordOf(a, { epoch: 2n }), recordOf(a, { state: "retired" }), undefined]) {
    record = ended;
    assert.equal(lease.holds, false);
  }
});
