// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, parseIdentity, SpaceError, type WorkerPresence, type WorkerReport } from "@space/model";
import { Reports } from "./reports.ts";

const identity = parseIdentity({
  sandboxId: `i${"a".repeat(20)}`,
  generation: "1",
  placement: { workerId: `wrk_${"w".repeat(16)}`, substrate: "namespace" },
  activation: { id: `act_${"b".repeat(26)}`, attempt: 1 },
});
const report: WorkerReport = { identity, what: "exited", reason: "killed" };

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

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function presence(answer: () => Promise<void>): WorkerPresence & { heard: WorkerReport[] } {
  const heard: WorkerReport[] = [];
  return {
    heard,
    hello: () => Promise.reject(new Error("not expected")),
    renew: () => Promise.reject(new Error("not expected")),
    report: async (said) => {
      heard.push(said);
      await answer();
    },
  };
}

test("a report waits for a presence and is sent until it is acknowledged", async () => {
  const clock = new HandClock();
  const reports = new Reports(clock, 10);
  reports.add(report);
  let refusals = 1;
  const plane = presence(async () => {
    refusals -= 1;
    if (refusals >= 0) throw new SpaceError("link/closed", {});
  });
  reports.use(plane);
  await turn();
  assert.deepEqual(reports.pending, [report]);
  for (const fire of [...clock.timers]) fire();
  await turn();
  assert.deepEqual(reports.pending, []);
  assert.equal(plane.heard.length, 2);
});

test("a new presence hears at once what the old one did not acknowledge", async () => {
  const reports = new Reports(new HandClock(), 10);
  const deaf = presence(() => new Promise(() => undefined));
  const next = presence(async () => undefined);
  reports.use(deaf);
  reports.add(report);
  reports.use(next);
  await turn();
  assert.deepEqual([deaf.heard.length, next.heard.length], [1, 1]);
  assert.deepEqual(reports.pending, []);
});

test("what the control plane has decided itself is not told any more; another execution's end is", () => {
  const reports = new Reports(new HandClock(), 10);
  reports.add(report);
  reports.drop({ ...identity, activation: { ...identity.activation, attempt: 2 } });
  assert.deepEqual(reports.pending, [report]);
  reports.drop(identity);
  assert.deepEqual(reports.pending, []);
});
