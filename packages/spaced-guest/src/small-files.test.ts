// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Clock } from "@space/model";
import type { Fetch, FetchLane } from "./fetch-lane.ts";
import type { GuestConnection } from "./guest-connection.ts";
import { GuestConnectionError } from "./guest-error.ts";
import type { GuestPool } from "./guest-pool.ts";
import { SmallFiles } from "./small-files.ts";

/** A lane whose answers the test gives. */
class HandLane {
  waiting: Fetch[] = [];
  answered = 0;
  paused = false;
  ended = false;
  released = false;

  add(fetch: Fetch): void {
    this.waiting.push(fetch);
  }

  answer(): void {
    this.answered += 1;
    this.waiting.shift()?.done({ modifiedAtMs: 0, sizeBytes: 0, content: Buffer.alloc(0) });
  }

  get asConnection(): GuestConnection {
    const lane = this;
    const fetches = {
      add: (fetch: Fetch) => lane.add(fetch),
      get waiting() {
        return lane.waiting.length;
      },
      get answered() {
        return lane.answered;
      },
      get paused() {
        return lane.paused;
      },
      giveUpQueued() {
        const [first, ...queued] = lane.waiting;
        const silent = queued.map((fetch) => ({ ...fetch, done: () => undefined }));
        lane.waiting = first === undefined ? [] : [first, ...silent];
        return queued;
      },
      release: () => {
        lane.released = true;
      },
    };
    return {
      get ended() {
        return lane.ended;
      },
      fetches: () => fetches as Partial<FetchLane> as FetchLane, // cast: what is used of it
      destroy: () => {
        lane.ended = true;
      },
    } as Partial<GuestConnection> as GuestConnection; // cast: what is used of it
  }
}

class Rig {
  readonly lanes: HandLane[] = [];
  readonly readmitted: GuestConnection[] = [];
  readonly done: string[] = [];
  readonly failed: string[] = [];
  refusesToOpen = false;
  readonly #timers: (() => void)[] = [];
  readonly files: SmallFiles;

  constructor() {
    const pool: Partial<GuestPool> = {
      detach: () => {
        if (this.refusesToOpen) return Promise.reject(new GuestConnectionError("timeout"));
        const lane = new HandLane();
        this.lanes.push(lane);
        return Promise.resolve(lane.asConnection);
      },
      readmit: (connection) => void this.readmitted.push(connection),
    };
    const after: Clock["after"] = (_delayMs, callback) => {
      this.#timers.push(callback);
      return () => void this.#timers.splice(this.#timers.indexOf(callback), 1);
    };
    const clock: Partial<Clock> = { after };
    this.files = new SmallFiles(pool as GuestPool, clock as Clock); // cast: what is used of them
  }

  ask(...paths: string[]): void {
    for (const path of paths)
      this.files.fetch({ path, done: () => this.done.push(path), failed: () => this.failed.push(path) });
  }

  get timers(): number {
    return this.#timers.length;
  }

  async later(): Promise<void> {
    for (const timer of this.#timers.splice(0)) timer();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async opened(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

it("asks for all files over one connection, and stops looking when nothing is awaited", async () => {
  const rig = new Rig();
  rig.ask("a", "b");
  await rig.opened();
  rig.ask("c");
  assert.equal(rig.lanes.length, 1);
  for (let count = 0; count < 3; count += 1) rig.lanes[0]?.answer();
  assert.deepEqual(rig.done, ["a", "b", "c"]);
  await rig.later();
  assert.equal(rig.timers, 0);
});

it("lets the files behind a stuck one past it, on another connection, and each is answered once", async () => {
  const rig = new Rig();
  rig.ask("stuck", "b", "c");
  await rig.opened();
  await rig.later();
  assert.equal(rig.lanes.length, 2);
  rig.lanes[1]?.answer();
  rig.lanes[1]?.answer();
  assert.deepEqual(rig.done, ["b", "c"]);
  rig.ask("d");
  rig.lanes[1]?.answer();
  for (let count = 0; count < 3; count += 1) rig.lanes[0]?.answer();
  assert.deepEqual(rig.done, ["b", "c", "d", "stuck"]);
  await rig.later();
  assert.equal(rig.readmitted.length, 1);
  assert.equal(rig.lanes[0]?.released, true);
});

it("goes on waiting where it waits when no other connection can be opened", async () => {
  const rig = new Rig();
  rig.ask("frozen", "b");
  await rig.opened();
  rig.refusesToOpen = true;
  await rig.later();
  await rig.later();
  rig.lanes[0]?.answer();
  rig.lanes[0]?.answer();
  assert.deepEqual([rig.done, rig.failed], [["frozen", "b"], []]);
});

it("is not held up by a caller who does not take his answer", async () => {
  const rig = new Rig();
  rig.ask("a", "b");
  await rig.opened();
  const [lane] = rig.lanes;
  assert.ok(lane);
  lane.paused = true;
  await rig.later();
  assert.equal(rig.lanes.length, 1);
});

it("opens another connection after one has ended, and refuses when it is closed", async () => {
  const rig = new Rig();
  rig.ask("a");
  await rig.opened();
  const [lane] = rig.lanes;
  assert.ok(lane);
  lane.ended = true;
  rig.ask("b");
  await rig.opened();
  assert.equal(rig.lanes.length, 2);
  rig.files.close();
  rig.ask("c");
  assert.deepEqual(rig.failed, ["c"]);
  assert.equal(rig.lanes[1]?.ended, true);
});
