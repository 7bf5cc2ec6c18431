// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Clock,
  isSpaceError,
  parseWorkerId,
  type ReceiverFeed,
  type SandboxStore,
  type WorkerControl,
  type WorkerHandle,
  type WorkerId,
} from "@space/model";
import { ConnectedWorkers } from "./connected-workers.ts";
import { Placements } from "./placements.ts";

const idOf = (letter: string): WorkerId => parseWorkerId(`wrk_${letter.repeat(16)}`);
const feed: ReceiverFeed = { tell: async () => undefined };
const control = {} as WorkerControl; // cast: no command is given here

function handleOf(letter: string, capacity = 4): WorkerHandle {
  const endpoint = { host: `${letter}.test`, port: 1 };
  const keys = { replaceKeys: () => Promise.resolve() };
  return { workerId: idOf(letter), control, feed, keys, endpoint, capacity, substrate: "namespace" };
}

function clockAt(): Clock & { nowMs: number } {
  const clock = { nowMs: 100, wallMs: () => 0, monotonicMs: () => clock.nowMs, after: () => () => undefined };
  return clock;
}

/** A store that only knows loads. */
function storeWith(load: Readonly<Record<string, number>>): SandboxStore {
  const entries = Object.entries(load).map(([letter, held]): [WorkerId, number] => [idOf(letter), held]);
  return { load: async () => new Map(entries) } as unknown as SandboxStore; // cast: the one method that is used
}

describe("the directory of workers", () => {
  test("a worker that went away is located where it was, and how long ago is known", () => {
    const clock = clockAt();
    const workers = new ConnectedWorkers(clock);
    clock.nowMs = 150;
    assert.equal(workers.awayMs(idOf("a")), 50, "never seen: since the start");
    const handle = handleOf("a");
    workers.add(handle);
    clock.nowMs = 500;
    assert.equal(workers.awayMs(idOf("a")), 0);
    assert.equal(workers.removeIfStillAt(handle), true);
    clock.nowMs = 530;
    assert.equal(workers.awayMs(idOf("a")), 30);
    assert.equal(workers.find(idOf("a")), undefined);
    assert.deepEqual(workers.endpointOf(idOf("a")), { workerId: idOf("a"), host: "a.test", port: 1 });
  });

  test("incident 1: only the link that is named is removed", () => {
    const workers = new ConnectedWorkers(clockAt());
    const older = handleOf("a");
    const newer = handleOf("a");
    workers.add(older);
    workers.add(newer);
    assert.equal(workers.removeIfStillAt(older), false);
    assert.equal(workers.find(idOf("a")), newer);
  });
});

describe("placements", () => {
  function placements(load: Readonly<Record<string, number>>, handles: readonly WorkerHandle[]): Placements {
    const workers = new ConnectedWorkers(clockAt());
    for (const handle of handles) workers.add(handle);
    return new Placements(workers, storeWith(load));
  }

  test("choose the worker that is least full for its size, and count what was chosen but not written", async () => {
    const subject = placements({ a: 1, b: 4 }, [handleOf("a", 4), handleOf("b", 40)]);
    const chosen: string[] = [];
    for (let round = 0; round < 8; round += 1) chosen.push((await subject.choose(undefined)).worker.workerId);
    assert.equal(chosen.filter((id) => id === idOf("b")).length, 7);
    assert.equal(chosen[0], idOf("b"));
  });

  test("what was released once counts once", async () => {
    const subject = placements({}, [handleOf("a", 1)]);
    const placement = await subject.choose(undefined);
    const full = (error: unknown): boolean => isSpaceError(error, "worker/none-free");
    await assert.rejects(subject.choose(undefined), full);
    placement.release();
    placement.release();
    await subject.choose(undefined);
    await assert.rejects(subject.choose(undefined), full);
  });

  test("a worker without room, or of size nothing, is not chosen", async () => {
    const subject = placements({ a: 4 }, [handleOf("a", 4), handleOf("b", 0)]);
    await assert.rejects(subject.choose(undefined), (error) => isSpaceError(error, "worker/none-free"));
    await assert.rejects(subject.choose(idOf("c")), (error) => isSpaceError(error, "worker/unreachable"));
  });
});
