// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { type Chunk, type Digest, SpaceError, type TenantSnapshots } from "@space/model";
import type { CutClass } from "./cut-archive.ts";
import { MemoryByteStore } from "./memory-byte-store.ts";
import { snapshotStore } from "./snapshot-store.ts";
import { code, seeded, sha256, tenantKey } from "./tenant.fixture.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

const classes: readonly CutClass[] = [
  { untilChunk: Number.POSITIVE_INFINITY, bits: 8, minBytes: 64, maxBytes: 1024 },
];
const content = Buffer.from(seeded("archive").bytes(20_000));

/** Counts what is done at once, and how much of it there is in all. */
class WatchedStore extends MemoryByteStore {
  puts = 0;
  gets = 0;
  running = 0;
  mostRunning = 0;

  override async put(key: string, bytes: Uint8Array): Promise<void> {
    this.puts += 1;
    await this.#watched(() => super.put(key, bytes));
  }
  override async get(key: string, limitBytes: number): Promise<Uint8Array | undefined> {
    this.gets += 1;
    return this.#watched(() => super.get(key, limitBytes));
  }
  async #watched<T>(work: () => Promise<T>): Promise<T> {
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    await new Promise((resolve) => setImmediate(resolve));
    this.running -= 1;
    return work();
  }
}

let store: WatchedStore;
let snapshots: TenantSnapshots;
beforeEach(() => {
  store = new WatchedStore();
  snapshots = opened("a");
});

function opened(letter: string, maxChunks = 2800): TenantSnapshots {
  return snapshotStore({ store, random: seeded(`nonces of ${letter}`) }, { classes, maxChunks }).open(
    tenantKey(letter),
  );
}

async function* stream(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 700) yield bytes.subarray(at, at + 700);
}

async function whole(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of archive) pieces.push(piece);
  return Buffer.concat(pieces);
}

function placeOf({ digest }: Pick<Chunk, "digest">): string {
  const name = new TenantSecrets(tenantKey("a")).name(digest);
  return [...store.held.keys()].find((key) => key.endsWith(name)) ?? assert.fail("it is stored");
}

function at(chunks: readonly Chunk[], index: number): Chunk {
  return chunks[index] ?? assert.fail("there are so many");
}

function bytesAt(place: string): Uint8Array {
  return store.held.get(place)?.bytes ?? assert.fail("it is stored");
}

function replace(place: string, bytes: Uint8Array): void {
  store.held.set(place, { bytes, modifiedMs: 0 });
}

test("gives an archive back, and its list says what is in it", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  assert.ok(chunks.length > 20);
  assert.deepEqual(await whole(snapshots.archives.read(chunks)), content);
  assert.equal(
    chunks.reduce((total, { sizeBytes }) => total + sizeBytes, 0),
    content.length,
  );
  assert.equal(await snapshots.archives.missing(chunks), undefined);
  assert.deepEqual(await snapshots.archives.write(stream(Buffer.alloc(0))), []);
  assert.deepEqual(await whole(snapshots.archives.read([])), Buffer.alloc(0));
});

test("equal chunks of a tenant are stored once, also those of one archive, and never shared with another tenant", async () => {
  const once = await snapshots.archives.write(stream(content));
  const { size } = store.held;
  assert.deepEqual(await opened("a").archives.write(stream(content)), once);
  assert.equal(store.held.size, size);
  const repeated = await snapshots.archives.write(stream(Buffer.alloc(50_000)));
  assert.ok(store.held.size - size <= 2);
  assert.deepEqual(await whole(snapshots.archives.read(repeated)), Buffer.alloc(50_000));
  const before = store.held.size;
  await opened("b").archives.write(stream(content));
  assert.ok(store.held.size - before > 20);
});

test("names and keys in the store tell neither content nor digest", async () => {
  const [chunk] = await snapshots.archives.write(stream(Buffer.from("content that is known to many")));
  assert.equal(store.held.size, 1);
  const [[key, { bytes }] = assert.fail("it is stored")] = store.held;
  assert.equal(key.includes(chunk?.digest ?? ""), false);
  assert.equal(Buffer.from(bytes).includes("known to many"), false);
});

test("stores and fetches a bounded number of chunks at once, several of them", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  assert.ok(store.mostRunning > 1 && store.mostRunning <= 8);
  store.mostRunning = 0;
  await whole(snapshots.archives.read(chunks));
  assert.ok(store.mostRunning > 1 && store.mostRunning <= 8);
});

test("refuses an archive of more chunks than a manifest takes", async () => {
  const { archives } = opened("a", 3);
  await archives.write(stream(content.subarray(0, 150)));
  await assert.rejects(archives.write(stream(content)), code("input/too-large"));
});

test("a chunk that cannot be stored fails the whole and stops the source", async () => {
  let given = 0;
  async function* endless(): AsyncIterable<Uint8Array> {
    for (;;) {
      given += 1;
      yield seeded(String(given)).bytes(2000);
    }
  }
  store.beforePut = () => {
    if (store.puts > 5) throw new SpaceError("store/failed", { step: "put" });
  };
  await assert.rejects(snapshots.archives.write(endless()), code("store/failed"));
  assert.ok(given < 20);
});

test("a source that breaks off fails the write", async () => {
  async function* broken(): AsyncIterable<Uint8Array> {
    yield Buffer.from("abc");
    throw new SpaceError("substrate/failed", { step: "snapshot" });
  }
  await assert.rejects(snapshots.archives.write(broken()), code("substrate/failed"));
});

test("gives out verified bytes only, up to the chunk that is not as it was", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  const place = placeOf(at(chunks, 3));
  const good = bytesAt(place);
  const flipped = Uint8Array.from(good);
  flipped[flipped.length - 1] = (flipped[flipped.length - 1] ?? 0) ^ 1;
  const cases: readonly (readonly [string, () => void])[] = [
    ["chunk/damaged", () => replace(place, flipped)],
    ["chunk/truncated", () => replace(place, good.subarray(0, 30))],
    ["chunk/misplaced", () => replace(place, bytesAt(placeOf(at(chunks, 4))))],
    ["chunk/damaged", () => replace(place, new Uint8Array(20 * 1024 * 1024))],
    ["snapshot/missing", () => store.held.delete(place)],
  ];
  const before = chunks.slice(0, 3).reduce((total, { sizeBytes }) => total + sizeBytes, 0);
  for (const [expected, harm] of cases) {
    harm();
    let got = 0;
    await assert.rejects(async () => {
      for await (const piece of snapshots.archives.read(chunks)) got += piece.length;
    }, code(expected));
    assert.equal(got, before);
  }
  assert.equal(await snapshots.archives.missing(chunks), at(chunks, 3).digest);
  replace(place, good);
  assert.deepEqual(await whole(snapshots.archives.read(chunks)), content);
});

test("two chunks that changed places are refused", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  const [one, other] = [placeOf(at(chunks, 0)), placeOf(at(chunks, 1))];
  const [first, second] = [bytesAt(one), bytesAt(other)];
  replace(one, second);
  replace(other, first);
  await assert.rejects(whole(snapshots.archives.read(chunks)), code("chunk/misplaced"));
});

test("a chunk of another size than the manifest says is refused", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  const wrong = chunks.map((chunk) => ({ ...chunk, sizeBytes: chunk.sizeBytes + 1 }));
  await assert.rejects(whole(snapshots.archives.read(wrong)), code("chunk/size"));
});

test("another version of the tenant's key does not find what this one sealed", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  assert.equal(await opened("b").archives.missing(chunks), at(chunks, 0).digest);
  await assert.rejects(whole(opened("b").archives.read(chunks)), code("snapshot/missing"));
});

test("a damaged chunk is found before it is relied on, and stored anew", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  const place = placeOf(at(chunks, 2));
  replace(place, bytesAt(place).subarray(0, 60));
  assert.deepEqual(await opened("a").archives.write(stream(content)), chunks);
  assert.deepEqual(await whole(snapshots.archives.read(chunks)), content);
});

test("what this process has verified is looked for again, and not read again", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  store.gets = 0;
  await snapshots.archives.write(stream(content));
  assert.equal(store.gets, 0);
  store.held.delete(placeOf(at(chunks, 0)));
  await snapshots.archives.write(stream(content));
  assert.equal(await snapshots.archives.missing(chunks), undefined);
});

test("a store that cannot answer is a failure, and never an absent chunk", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  store.get = async () => {
    throw new SpaceError("store/failed", { step: "get" });
  };
  await assert.rejects(whole(snapshots.archives.read(chunks)), code("store/failed"));
  await assert.rejects(opened("a").archives.write(stream(content)), code("store/failed"));
});

test("a reader that stops early leaves no unhandled failure and fetches no further", async () => {
  const chunks = await snapshots.archives.write(stream(content));
  store.held.delete(placeOf(at(chunks, 1)));
  store.gets = 0;
  for await (const piece of snapshots.archives.read(chunks)) {
    assert.equal(piece.length, at(chunks, 0).sizeBytes);
    break;
  }
  assert.ok(store.gets <= 9);
});

test("statements are sealed likewise, and never put under a digest that is not theirs", async () => {
  const statement = Buffer.from("signed words");
  const digest: Digest = sha256(statement);
  await snapshots.objects.put(digest, statement);
  assert.deepEqual(Buffer.from(await snapshots.objects.get(digest)), statement);
  await assert.rejects(snapshots.objects.put(digest, Buffer.from("others")), code("snapshot/refused"));
});

test("only a statement that is there, whole, and not put aside is kept for a snapshot that begins", async () => {
  const statement = Buffer.from("signed words");
  const digest: Digest = sha256(statement);
  const { objects } = snapshots;
  assert.equal(await objects.keeps(digest), false);
  await objects.put(digest, statement);
  assert.equal(await opened("a").objects.keeps(digest), true);
  const [[place, held] = assert.fail("it is there")] = store.held;
  store.held.set(place, { ...held, bytes: held.bytes.slice(0, -1) });
  assert.equal(await opened("a").objects.keeps(digest), false, "damaged");
  store.held.delete(place);
  store.held.set(place.replace(/^chunks(.*)\/..\/(.*)$/, "condemned$1/batch/$2"), held);
  assert.equal(await opened("a").objects.keeps(digest), false, "put aside");
  assert.deepEqual(Buffer.from(await opened("a").objects.get(digest)), statement);
});
