// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SpareGuests } from "./spare-guests.ts";
import { UidRanges, uidsPerGuest } from "./uid-ranges.ts";

/** Spares whose timer and launcher the test works by hand. */
function rig(wanted: number) {
  const timers = new Set<() => void>();
  const preparing: (() => void)[] = [];
  const killed: string[] = [];
  let prepared = 0;
  const folder = { path: "p", upper: "u", work: "w" };
  const ranges = new UidRanges(uidsPerGuest, 16);
  const spares = new SpareGuests(wanted, {
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
    after: (_delayMs, action) => {
      timers.add(action);
      return () => timers.delete(action);
    },
  });
  return {
    spares,
    killed,
    ranges,
    prepared: () => prepared,
    inPreparation: () => preparing.length,
    timers: () => timers.size,
    pass: async () => {
      for (const action of [...timers]) {
        timers.delete(action);
        action();
      }
      await settled();
    },
    finishOne: async () => {
      preparing.shift()?.();
      await settled();
    },
  };
}

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
});
