// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Digest, SnapshotReferences, TenantSnapshots } from "@space/model";
import { ChunkCollector, type CollectorOptions } from "./collect-chunks.ts";
import { MemoryByteStore } from "./memory-byte-store.ts";
import { condemnedPlace, livePlace } from "./places.ts";
import { snapshotStore } from "./snapshot-store.ts";
import { code, seeded, sha256, tenantKey } from "./tenant.fixture.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

const key = tenantKey("a");
const hourMs = 60 * 60 * 1000;
const secrets = new TenantSecrets(key);

let nowMs = 0;
let store: MemoryByteStore;
let needed: Set<Digest>;
let pauses: Set<string>;
const references: SnapshotReferences = {
  needed: async function* () {
    yield* needed;
  },
  underWay: async () => new Set(pauses),
};

beforeEach(() => {
  nowMs = 0;
  store = new MemoryByteStore(() => nowMs);
  needed = new Set();
  pauses = new Set();
});

function collector(options: CollectorOptions = {}): ChunkCollector {
  return new ChunkCollector(
    { store, references, clock: { wallMs: () => nowMs }, random: seeded(`${nowMs}`) },
    options,
  );
}

function open(): TenantSnapshots {
  return snapshotStore({ store, random: seeded("nonces") }).open(key);
}

async function put(text: string): Promise<Digest> {
  const content = Buffer.from(text);
  await open().objects.put(sha256(content), content);
  return sha256(content);
}

function isLive(digest: Digest): boolean {
  return store.held.has(livePlace(key, secrets.name(digest)));
}

test("removes what nothing needs, in two passes, and keeps what something does", async () => {
  const [kept, dropped] = [await put("kept"), await put("dropped")];
  needed.add(kept);
  nowMs = hourMs + 1;
  const collecting = collector();
  assert.deepEqual(await collecting.collect(key), {
    condemned: 1,
    restored: 0,
    removed: 0,
    removedBytes: 0,
    waiting: 0,
  });
  assert.equal(isLive(dropped), false);
  assert.deepEqual(Buffer.from(await open().objects.get(dropped)), Buffer.from("dropped")); // until it is removed
  const second = await collecting.collect(key);
  assert.equal(second.removed, 1);
  assert.ok(second.removedBytes > 50);
  assert.deepEqual([...store.held.keys()], [livePlace(key, secrets.name(kept))]);
  await assert.rejects(open().objects.get(dropped), code("snapshot/missing"));
});

test("leaves what is young, and what another key has sealed", async () => {
  await put("young");
  nowMs = hourMs;
  assert.equal((await collector().collect(key)).condemned, 0);
  nowMs += 1;
  assert.equal((await collector().collect(tenantKey("b"))).condemned, 0);
  assert.equal((await collector().collect({ ...key, keyId: tenantKey("b").keyId })).condemned, 0);
  assert.equal((await collector().collect(key)).condemned, 1);
});

test("a pause that found a chunk before it was put aside gets it back, committed while the collector waits", async () => {
  const digest = await put("found by a pause");
  nowMs = 2 * hourMs;
  pauses.add("sandbox 1");
  assert.equal(await open().objects.keeps(digest), true); // so the pause does not store it
  const collecting = collector();
  await collecting.collect(key);
  assert.equal((await collecting.collect(key)).waiting, 1);
  pauses.add("sandbox 2"); // began later: nobody waits for it
  needed.add(digest);
  pauses.delete("sandbox 1");
  assert.equal((await collecting.collect(key)).restored, 1);
  assert.equal(isLive(digest), true);
  assert.deepEqual(Buffer.from(await open().objects.get(digest)), Buffer.from("found by a pause"));
});

test("a pause that begins later stores it anew, and that one is not touched", async () => {
  const digest = await put("wanted again");
  nowMs = 2 * hourMs;
  const collecting = collector();
  await collecting.collect(key);
  await put("wanted again");
  needed.add(digest);
  assert.equal((await collecting.collect(key)).restored, 1);
  assert.equal(store.held.size, 1);
  assert.equal(isLive(digest), true);
});

test("a collector that is new to a batch waits for the pauses of now", async () => {
  await put("dropped");
  nowMs = 2 * hourMs;
  await collector().collect(key); // and crashes
  pauses.add("sandbox 1");
  const next = collector();
  assert.equal((await next.collect(key)).waiting, 1);
  pauses.delete("sandbox 1");
  assert.equal((await next.collect(key)).removed, 1);
});

test("waits anew when another process adds to a batch that it is about to end", async () => {
  const [first, second] = [await put("first"), await put("second")];
  nowMs = 2 * hourMs;
  pauses.add("sandbox 1");
  const move = (digest: Digest): Promise<boolean> => {
    const name = secrets.name(digest);
    return store.move(livePlace(key, name), condemnedPlace(key, "batch", name));
  };
  await move(first);
  const collecting = collector({ graceMs: 9 * hourMs });
  assert.equal((await collecting.collect(key)).waiting, 1);
  pauses.add("sandbox 2"); // finds the second one before it is moved
  await move(second);
  needed.add(second);
  pauses.delete("sandbox 1");
  assert.equal((await collecting.collect(key)).waiting, 1);
  pauses.delete("sandbox 2");
  const { restored, removed } = await collecting.collect(key);
  assert.deepEqual({ restored, removed }, { restored: 1, removed: 1 });
});

test("goes through many names in parts, with the same outcome", async () => {
  const digests: Digest[] = [];
  for (let at = 0; at < 60; at += 1) digests.push(await put(`content ${at}`));
  for (const digest of digests.slice(0, 30)) needed.add(digest);
  nowMs = 2 * hourMs;
  const collecting = collector({ namesAtOnce: 7 });
  let [condemned, removed] = [0, 0];
  for (let pass = 0; pass < 12; pass += 1) {
    const done = await collecting.collect(key);
    assert.ok(done.condemned <= 7);
    condemned += done.condemned;
    removed += done.removed;
  }
  assert.deepEqual({ condemned, removed }, { condemned: 30, removed: 30 });
  assert.equal(digests.filter(isLive).length, 30);
});

test("ends without a step where it cannot be told what is needed", async () => {
  const digest = await put("kept");
  nowMs = 2 * hourMs;
  const failing = new ChunkCollector(
    {
      store,
      references: {
        needed: async function* () {
          yield* [];
          throw new Error("the database is away");
        },
        underWay: async () => new Set(),
      },
      clock: { wallMs: () => nowMs },
      random: seeded("failing"),
    },
    {},
  );
  await assert.rejects(failing.collect(key), /away/);
  assert.equal(isLive(digest), true);
});
