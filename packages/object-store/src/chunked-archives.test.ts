// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { type Digest, isSpaceError, type ObjectStore, parseDigest, SpaceError } from "@space/model";
import { chunkedArchives } from "./chunked-archives.ts";

const digestOf = (content: Uint8Array): Digest => parseDigest(hash("sha256", content, "hex"));
const code = (expected: string) => (error: unknown) => isSpaceError(error) && error.code === expected;

/** A store in memory that counts its calls. */
class CountingStore implements ObjectStore {
  readonly objects = new Map<Digest, Uint8Array>();
  puts = 0;
  gets = 0;
  running = 0;
  mostRunning = 0;
  failAtPut = 0;

  async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    this.puts += 1;
    if (this.puts === this.failAtPut) throw new SpaceError("store/failed", { step: "put" });
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    await Promise.resolve();
    this.running -= 1;
    this.objects.set(digest, bytes);
  }
  async get(digest: Digest): Promise<Uint8Array> {
    this.gets += 1;
    const found = this.objects.get(digest);
    if (found === undefined) throw new SpaceError("snapshot/missing", { digest });
    return found;
  }
  async has(digest: Digest): Promise<boolean> {
    return this.objects.has(digest);
  }
  async remove(digest: Digest): Promise<void> {
    this.objects.delete(digest);
  }
}

async function* stream(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function text(archive: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of archive) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("cuts at fixed lengths however the bytes arrive, and gives them back in order", async () => {
  const store = new CountingStore();
  const archives = chunkedArchives(store, { chunkBytes: 4 });
  const once = await archives.write(stream("abcdefghij"));
  assert.deepEqual(
    once,
    ["abcd", "efgh", "ij"].map((part) => ({ digest: digestOf(Buffer.from(part)), sizeBytes: part.length })),
  );
  assert.deepEqual(await archives.write(stream("a", "", "bcdefg", "hij")), once);
  assert.equal(await text(archives.read(once)), "abcdefghij");
});

test("an empty archive has no chunks", async () => {
  const archives = chunkedArchives(new CountingStore());
  assert.deepEqual(await archives.write(stream()), []);
  assert.equal(await text(archives.read([])), "");
});

test("an archive of whole chunks ends without an empty one", async () => {
  const chunks = await chunkedArchives(new CountingStore(), { chunkBytes: 2 }).write(stream("aabb"));
  assert.deepEqual(
    chunks.map(({ sizeBytes }) => sizeBytes),
    [2, 2],
  );
});

test("stores a bounded number of chunks at once", async () => {
  const store = new CountingStore();
  await chunkedArchives(store, { chunkBytes: 1 }).write(stream("0123456789"));
  assert.ok(store.mostRunning <= 2);
});

test("refuses an archive above the limit", async () => {
  const archives = chunkedArchives(new CountingStore(), { chunkBytes: 1, maxChunks: 3 });
  await archives.write(stream("abc"));
  await assert.rejects(archives.write(stream("abcd")), code("input/too-large"));
});

test("a chunk that cannot be stored fails the whole and stops the source", async () => {
  const store = new CountingStore();
  store.failAtPut = 2;
  let given = 0;
  async function* endless(): AsyncIterable<Uint8Array> {
    for (;;) {
      given += 1;
      yield Buffer.from([given % 256]);
    }
  }
  await assert.rejects(chunkedArchives(store, { chunkBytes: 1 }).write(endless()), code("store/failed"));
  assert.ok(given < 8);
});

test("a source that breaks off fails the write", async () => {
  async function* broken(): AsyncIterable<Uint8Array> {
    yield Buffer.from("abc");
    throw new SpaceError("substrate/failed", { step: "snapshot" });
  }
  await assert.rejects(chunkedArchives(new CountingStore()).write(broken()), code("substrate/failed"));
});

test("a missing chunk ends the reading where it is, after verified bytes only", async () => {
  const store = new CountingStore();
  const archives = chunkedArchives(store, { chunkBytes: 2 });
  const chunks = await archives.write(stream("aabbcc"));
  const absent = chunks[1]?.digest ?? assert.fail("there is a second chunk");
  await store.remove(absent);
  assert.equal(await archives.missing(chunks), absent);
  const got: string[] = [];
  await assert.rejects(async () => {
    for await (const piece of archives.read(chunks)) got.push(Buffer.from(piece).toString());
  }, code("snapshot/missing"));
  assert.deepEqual(got, ["aa"]);
});

test("a chunk of another size than the manifest says is refused", async () => {
  const archives = chunkedArchives(new CountingStore(), { chunkBytes: 2 });
  const chunks = await archives.write(stream("aabb"));
  const wrong = chunks.map((chunk) => ({ ...chunk, sizeBytes: 3 }));
  await assert.rejects(text(archives.read(wrong)), code("snapshot/refused"));
});

test("a reader that stops early leaves no unhandled failure and fetches no further", async () => {
  const store = new CountingStore();
  const archives = chunkedArchives(store, { chunkBytes: 1 });
  const chunks = await archives.write(stream("abcdefgh"));
  await store.remove(chunks[1]?.digest ?? assert.fail("there is a second chunk"));
  for await (const piece of archives.read(chunks)) {
    assert.equal(Buffer.from(piece).toString(), "a");
    break;
  }
  assert.ok(store.gets <= 3);
});
