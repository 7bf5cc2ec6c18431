// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Pauses, kills, resumes and two collectors over one store, in an order that a seed decides, with crashes at any step.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Chunk,
  type Digest,
  isSpaceError,
  type SnapshotReferences,
  type StoredBytes,
  type TenantSnapshots,
} from "@space/model";
import { ChunkCollector } from "./collect-chunks.ts";
import type { CutClass } from "./cut-archive.ts";
import { MemoryByteStore } from "./memory-byte-store.ts";
import { snapshotStore } from "./snapshot-store.ts";
import { seeded, tenantKey } from "./tenant.fixture.ts";

const key = tenantKey("a");
const classes: readonly CutClass[] = [
  { untilChunk: Number.POSITIVE_INFINITY, bits: 31, minBytes: 8, maxBytes: 8 },
];

class Crash extends Error {}

/** Lets one waiting step go on at a time; the seed says which, and which of them is the end of its process. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #draw: (below: number) => number;
  running = 0;

  constructor(draw: (below: number) => number) {
    this.#draw = draw;
  }

  async next(): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Until every task has ended. */
  async run(): Promise<void> {
    while (this.running > 0) {
      const [chosen] = this.#waiting.splice(this.#draw(this.#waiting.length), 1);
      chosen?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async task(work: () => Promise<void>): Promise<void> {
    this.running += 1;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
    } finally {
      this.running -= 1;
    }
  }
}

/** Every step waits for its turn; a move is two steps, as on a store that can only copy. */
class SteppedStore extends MemoryByteStore {
  readonly #step: () => Promise<void>;

  constructor(step: () => Promise<void>) {
    super(() => 0);
    this.#step = step;
  }
  override async put(at: string, bytes: Uint8Array): Promise<void> {
    await this.#step();
    await super.put(at, bytes);
  }
  override async get(at: string, limitBytes: number): Promise<Uint8Array | undefined> {
    await this.#step();
    return super.get(at, limitBytes);
  }
  override async has(at: string): Promise<boolean> {
    await this.#step();
    return super.has(at);
  }
  override async move(from: string, to: string): Promise<boolean> {
    await this.#step();
    const found = this.held.get(from);
    if (found === undefined) return false;
    this.held.set(to, found);
    await this.#step();
    this.held.delete(from);
    return true;
  }
  override async remove(at: string): Promise<void> {
    await this.#step();
    await super.remove(at);
  }
  override async *list(prefix: string): AsyncIterable<StoredBytes> {
    await this.#step();
    yield* super.list(prefix);
  }
}

interface World {
  readonly lost: number;
  readonly counts: { committed: number; restored: number; removed: number; crashes: number };
  readonly left: number;
}

/** `forgetful`: the planted fault, a collector that does not ask for the pauses under way. */
async function play(seed: string, forgetful: boolean): Promise<World> {
  const random = seeded(seed);
  const draw = (below: number): number => Buffer.from(random.bytes(4)).readUInt32LE() % Math.max(below, 1);
  const turns = new Turns(draw);
  const counts = { committed: 0, restored: 0, removed: 0, crashes: 0 };
  let lost = 0;
  const crashing = (chance: number) => async (): Promise<void> => {
    await turns.next();
    if (draw(chance) > 0) return;
    counts.crashes += 1;
    throw new Crash();
  };
  const quiet = new SteppedStore(turns.next.bind(turns));
  const shaken = new SteppedStore(crashing(60));
  shaken.held = quiet.held;
  const heads = new Map<string, readonly Chunk[]>();
  const pauses = new Set<string>();
  const references: SnapshotReferences = {
    async *needed() {
      await turns.next();
      for (const chunks of [...heads.values()]) for (const { digest } of chunks) yield digest;
    },
    async underWay() {
      await turns.next();
      return new Set(forgetful ? [] : pauses);
    },
  };
  const open = (store: SteppedStore): TenantSnapshots =>
    snapshotStore({ store, random }, { classes }).open(key);
  // eight contents of one chunk each, so that pauses meet
  const content = (): Buffer =>
    Buffer.concat(Array.from({ length: 1 + draw(3) }, () => Buffer.from(`chunk  ${draw(8)}`)));

  const sandbox = async (name: string): Promise<void> => {
    for (let round = 0; round < 5; round += 1) {
      const archive = content();
      pauses.add(`${name} ${round}`);
      try {
        await turns.task(async () => {
          const chunks = await open(shaken).archives.write(
            (async function* () {
              yield archive;
            })(),
          );
          heads.set(name, chunks);
          counts.committed += 1;
        });
      } finally {
        pauses.delete(`${name} ${round}`);
      }
      const head = heads.get(name);
      if (head !== undefined && !(await isWhole(open(quiet), head))) lost += 1;
      if (draw(2) === 0) heads.delete(name); // killed, and another one made
    }
  };
  const collecting = async (which: number): Promise<void> => {
    let collector: ChunkCollector | undefined;
    const ports = {
      store: shaken,
      references,
      clock: { wallMs: () => 1 },
      random: seeded(`${seed} ${which}`),
    };
    const start = (life: number): ChunkCollector =>
      new ChunkCollector({ ...ports, random: seeded(`${seed} ${which} ${life}`) }, { graceMs: 0 });
    for (let pass = 0; pass < 20; pass += 1) {
      collector ??= start(pass);
      let isDone = false;
      const present: ChunkCollector = collector;
      await turns.task(async () => {
        const done = await present.collect(key);
        counts.restored += done.restored;
        counts.removed += done.removed;
        isDone = true;
      });
      if (!isDone) collector = undefined; // it crashed: a new one knows nothing
    }
  };
  const tasks = ["one", "two", "three"].map((name) => turns.task(() => sandbox(name)));
  tasks.push(...[1, 2].map((which) => turns.task(() => collecting(which))));
  await turns.run();
  await Promise.all(tasks);
  const last = turns.task(async () => {
    for (const chunks of heads.values()) if (!(await isWhole(open(quiet), chunks))) lost += 1;
    const ending = new ChunkCollector(
      { store: quiet, references, clock: { wallMs: () => 1 }, random: seeded("the end") },
      { graceMs: 0 },
    );
    for (let pass = 0; pass < 3; pass += 1) await ending.collect(key);
    for (const chunks of heads.values()) if (!(await isWhole(open(quiet), chunks))) lost += 1;
  });
  await turns.run();
  await last;
  const distinct = new Set([...heads.values()].flat().map(({ digest }): Digest => digest));
  return { lost, counts, left: quiet.held.size - distinct.size };
}

async function isWhole({ archives }: TenantSnapshots, chunks: readonly Chunk[]): Promise<boolean> {
  try {
    for await (const piece of archives.read(chunks)) assert.equal(piece.length, 8);
    return true;
  } catch (error) {
    if (isSpaceError(error, "snapshot/missing")) return false;
    throw error;
  }
}

test("no order of steps, and no crash, loses a chunk that is needed or leaves one that is not", async () => {
  const total = { committed: 0, restored: 0, removed: 0, crashes: 0 };
  for (let seed = 0; seed < 12; seed += 1) {
    const { lost, counts, left } = await play(`world ${seed}`, false);
    assert.equal(lost, 0, `world ${seed}`);
    assert.equal(left, 0, `world ${seed}`);
    total.committed += counts.committed;
    total.restored += counts.restored;
    total.removed += counts.removed;
    total.crashes += counts.crashes;
  }
  // everything that may go wrong was tried
  const { committed, restored, removed, crashes } = total;
  assert.ok(committed > 60);
  assert.ok(restored > 3);
  assert.ok(removed > 30);
  assert.ok(crashes > 20);
});

test("the same worlds lose chunks to a collector that does not ask for the pauses under way", async () => {
  let lost = 0;
  for (let seed = 0; seed < 60 && lost === 0; seed += 1) ({ lost } = await play(`world ${seed}`, true));
  assert.ok(lost > 0);
});
