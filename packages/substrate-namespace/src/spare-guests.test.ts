// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SpareGuests } from "./spare-guests.ts";
import { UidRanges, uidsPerGuest } from "./uid-ranges.ts";

/** Spares whose timer and launcher the test works by hand. */
function rig(least: number, most = least, rangeCount = 16) {
  const timers = new Map<() => void, number>();
  const preparing: (() => void)[] = [];
  const killed: string[] = [];
  let prepared = 0;
  const folder = { path: "p", upper: "u", work: "w" };
  const ranges = new UidRanges(uidsPerGuest, rangeCount);
  const spares = new SpareGuests(
    { least, most },
    {
      folders: { createSpare: () => folder, listSpares: () => [], remove: async () => undefined },
      groups: { create: () => [], destroy: async () => undefined, list: async () => [] },
      ranges,
      launcher: async () => ({
        prepare: () =>
          new Promise((resolve) => {
            preparing.push(() => {
              prepared += 1;
              resolve({ hostPid: 1, startTime: 1n });
            });
          }),
        kill: async (name) => void killed.push(name),
        list: async () => [],
      }),
      recipe: { lowerDir: "l", rootDir: "r", binds: [], tmpfsLimitBytes: 1 },
      after: (delayMs, action) => {
        timers.set(action, delayMs);
        return () => timers.delete(action);
      },
    },
  );
  return {
    spares,
    killed,
    ranges,
    prepared: () => prepared,
    inPreparation: () => preparing.length,
    timers: () => timers.size,
    /** So much time passes: what was to happen by then does. */
    pass: async (upToMs = calmMs) => {
      for (const [action, delayMs] of [...timers]) {
        if (delayMs > upToMs || !timers.delete(action)) continue;
        action();
      }
      await settled();
    },
    start: (count: number) => {
      const given = Array.from({ length: count }, () => spares.take());
      spares.refill();
      return given.flatMap((spare) => spare ?? []);
    },
    finishOne: async () => {
      preparing.shift()?.();
      await settled();
    },
  };
}

const calmMs = 15;
const periodMs = 30_000;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("spare guests", () => {
  it("are made one after the other, once starts have paused", async () => {
    const { spares, pass, finishOne, inPreparation, timers } = rig(2);
    spares.refill();
    spares.refill();
    assert.equal(timers(), 1, "each start begins the pause anew");
    assert.equal(inPreparation(), 0);
    await pass();
    assert.equal(inPreparation(), 1);
    await finishOne();
    assert.equal(inPreparation(), 1);
    await finishOne();
    assert.equal(inPreparation(), 0);
    const [one, two] = [spares.take(), spares.take()];
    assert.ok(one !== undefined && two !== undefined && one.name !== two.name && one.uidBase !== two.uidBase);
    assert.equal(spares.take(), undefined, "none is given twice");
  });

  it("wait again when a start comes while they are made, and lose nothing by it", async () => {
    const { spares, pass, finishOne, inPreparation, prepared } = rig(3);
    spares.refill();
    await pass();
    spares.refill();
    await finishOne();
    assert.equal(inPreparation(), 0, "the next waits for the pause");
    await pass();
    await finishOne();
    await finishOne();
    assert.equal(prepared(), 3);
    spares.refill();
    await pass();
    assert.equal(inPreparation(), 0, "enough");
  });

  it("never come to more than are wanted when a pause ends while one is made", async () => {
    const { spares, pass, finishOne, inPreparation, prepared } = rig(1);
    spares.refill();
    await pass();
    spares.refill();
    await pass();
    assert.equal(inPreparation(), 1);
    await finishOne();
    assert.equal(inPreparation(), 0);
    assert.equal(prepared(), 1);
  });

  it("end with their keeper, the one in preparation too", async () => {
    const { spares, pass, finishOne, killed, timers, ranges } = rig(2);
    spares.refill();
    await pass();
    await finishOne();
    const closed = spares.close();
    await finishOne();
    await closed;
    assert.equal(killed.length, 2);
    spares.refill();
    assert.equal(timers(), 0);
    assert.equal(spares.take(), undefined);
    for (let taken = 0; taken < 16; taken += 1) ranges.take(); // throws unless all have come back
  });

  it("become as many as starts came in one go, never above the most, and no two starts get the same", async () => {
    const { spares, pass, finishOne, start, inPreparation, prepared } = rig(2, 5);
    spares.refill();
    await pass();
    await finishOne();
    await finishOne();
    assert.equal(prepared(), 2);
    assert.equal(start(9).length, 2, "what was ready, and no more");
    await pass();
    while (inPreparation() > 0) await finishOne();
    const given = start(9);
    assert.equal(given.length, 5);
    assert.equal(new Set(given.map(({ name }) => name)).size, 5);
    assert.equal(new Set(given.map(({ uidBase }) => uidBase)).size, 5);
  });

  it("are ended down to the least when no burst has come for two periods, and then no timer is left", async () => {
    const { spares, pass, finishOne, start, inPreparation, killed, timers, ranges } = rig(1, 8);
    start(4);
    await pass();
    while (inPreparation() > 0) await finishOne();
    await pass(periodMs);
    assert.equal(killed.length, 0, "it was in the period before");
    await pass(periodMs);
    assert.equal(killed.length, 3);
    assert.equal(timers(), 0);
    for (let taken = 0; taken < 15; taken += 1) ranges.take(); // throws unless all but one have come back
    assert.equal(start(4).length, 1);
    await spares.close();
  });

  it("yield to a start without one: the range of one that is still being made too", async () => {
    const { spares, pass, finishOne, inPreparation, killed, ranges } = rig(2, 2, 2);
    spares.refill();
    await pass();
    assert.equal(inPreparation(), 1);
    ranges.take(); // a sandbox has the other range
    assert.ok(ranges.exhausted);
    const yielded = spares.sacrifice();
    await finishOne();
    assert.equal(await yielded, true);
    assert.equal(killed.length, 1);
    assert.equal(inPreparation(), 0, "none is begun for the range that was freed");
    ranges.take(); // throws unless it was
    assert.equal(await spares.sacrifice(), false, "there is none left");
  });
});
