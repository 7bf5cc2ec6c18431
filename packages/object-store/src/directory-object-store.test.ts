// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { type Digest, isSpaceError, parseDigest } from "@space/model";
import { DirectoryObjectStore, objectLimitBytes } from "./directory-object-store.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "objects-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const bytes = Buffer.from("plain bytes ".repeat(1000));
const digestOf = (content: Uint8Array): Digest => parseDigest(hash("sha256", content, "hex"));
const digest = digestOf(bytes);
const fileOf = (name: Digest): string => join(root, name.slice(0, 2), name);
const code = (expected: string) => (error: unknown) => isSpaceError(error) && error.code === expected;

test("gives back what was put, from another opening too, and stores it compressed", async () => {
  await (await DirectoryObjectStore.open(root)).put(digest, bytes);
  const store = await DirectoryObjectStore.open(root);
  assert.deepEqual(Buffer.from(await store.get(digest)), bytes);
  assert.ok(statSync(fileOf(digest)).size < bytes.length / 4);
  assert.equal(statSync(fileOf(digest)).mode & 0o777, 0o600);
});

test("storing what is there already is a success, at the same time too", async () => {
  const store = await DirectoryObjectStore.open(root);
  await Promise.all([store.put(digest, bytes), store.put(digest, bytes), store.put(digest, bytes)]);
  await store.put(digest, bytes);
  assert.deepEqual(readdirSync(join(root, "incoming")), []);
  assert.equal(await store.has(digest), true);
});

test("refuses bytes under a name that is not theirs, and keeps nothing of them", async () => {
  const store = await DirectoryObjectStore.open(root);
  await assert.rejects(store.put(digest, Buffer.from("others")), code("snapshot/refused"));
  assert.equal(await store.has(digest), false);
});

test("refuses an object above the limit before it is hashed", async () => {
  const store = await DirectoryObjectStore.open(root);
  await assert.rejects(store.put(digest, Buffer.alloc(objectLimitBytes + 1)), code("input/too-large"));
});

test("an absent object is missing, not damaged", async () => {
  const store = await DirectoryObjectStore.open(root);
  await assert.rejects(store.get(digest), code("snapshot/missing"));
  assert.equal(await store.has(digest), false);
});

test("refuses a damaged, cut-off, swapped or oversized object", async () => {
  const store = await DirectoryObjectStore.open(root);
  await store.put(digest, bytes);
  const stored = readFileSync(fileOf(digest));
  const altered = Buffer.from(stored);
  altered.writeUInt8(altered.readUInt8(altered.length - 1) ^ 1, altered.length - 1);
  const bomb = zstdCompressSync(Buffer.alloc(objectLimitBytes + 1));
  for (const bad of [altered, stored.subarray(0, 20), zstdCompressSync("others"), bomb, Buffer.alloc(0)]) {
    writeFileSync(fileOf(digest), bad);
    await assert.rejects(store.get(digest), code("snapshot/refused"));
  }
});

test("what the file system refuses is a failure of the store", async () => {
  const store = await DirectoryObjectStore.open(root);
  writeFileSync(join(root, digest.slice(0, 2)), "a file where a folder belongs");
  await assert.rejects(store.put(digest, bytes), code("store/failed"));
  assert.deepEqual(readdirSync(join(root, "incoming")), []);
});

test("removes an object, and an absent one without complaint", async () => {
  const store = await DirectoryObjectStore.open(root);
  await store.put(digest, bytes);
  await store.remove(digest);
  await store.remove(digest);
  assert.equal(await store.has(digest), false);
});

test("opening removes temporary files that a crash left, not those of a process at work", async () => {
  await DirectoryObjectStore.open(root);
  const old = join(root, "incoming", "old");
  writeFileSync(old, "");
  utimesSync(old, 1, 1);
  writeFileSync(join(root, "incoming", "young"), "");
  await DirectoryObjectStore.open(root);
  assert.deepEqual(readdirSync(join(root, "incoming")), ["young"]);
});

test("writes nothing that would leave too little of the disk, and says so", async () => {
  const { bavail, bsize } = statfsSync(root);
  const store = await DirectoryObjectStore.open(root, { keptFreeBytes: bavail * bsize * 2 });
  await assert.rejects(store.put(digest, bytes), code("store/full"));
  assert.equal(await store.has(digest), false);
  assert.deepEqual(readdirSync(root), ["incoming"]);
  assert.deepEqual(readdirSync(join(root, "incoming")), []);
  await (await DirectoryObjectStore.open(root)).put(digest, bytes);
  await store.put(digest, bytes); // it is there: nothing is written
});
