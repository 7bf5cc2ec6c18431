// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { isSpaceError } from "@space/model";
import { DirectoryByteStore } from "./directory-byte-store.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bytes-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const bytes = Buffer.from("sealed bytes");
const code = (expected: string) => (error: unknown) => isSpaceError(error) && error.code === expected;

test("what is stored is for its owner alone", async () => {
  await (await DirectoryByteStore.open(root)).put("chunks/a/b", bytes);
  assert.equal(statSync(join(root, "chunks/a/b")).mode & 0o777, 0o600);
  assert.equal(statSync(join(root, "chunks/a")).mode & 0o777, 0o700);
});

test("writes nothing that would leave too little of the disk, and says so", async () => {
  const { bavail, bsize } = statfsSync(root);
  const store = await DirectoryByteStore.open(root, { keptFreeBytes: bavail * bsize * 2 });
  await assert.rejects(store.put("chunks/a/b", bytes), code("store/full"));
  assert.equal(await store.has("chunks/a/b"), false);
  assert.deepEqual(readdirSync(root), ["incoming"]);
  assert.deepEqual(readdirSync(join(root, "incoming")), []);
  await (await DirectoryByteStore.open(root)).put("chunks/a/b", bytes);
  assert.deepEqual(await store.get("chunks/a/b", 100), bytes);
});

test("what the file system refuses is a failure of the store, and leaves nothing behind", async () => {
  const store = await DirectoryByteStore.open(root);
  writeFileSync(join(root, "chunks"), "a file where a folder belongs");
  await assert.rejects(store.put("chunks/a/b", bytes), code("store/failed"));
  assert.deepEqual(readdirSync(join(root, "incoming")), []);
});

test("opening removes temporary files that a crash left, not those of a process at work", async () => {
  await DirectoryByteStore.open(root);
  const old = join(root, "incoming", "old");
  writeFileSync(old, "");
  utimesSync(old, 1, 1);
  writeFileSync(join(root, "incoming", "young"), "");
  await DirectoryByteStore.open(root);
  assert.deepEqual(readdirSync(join(root, "incoming")), ["young"]);
});

test("one that is not there is not made by who only reads", async () => {
  await assert.rejects(DirectoryByteStore.existing(join(root, "absent")), code("store/failed"));
  assert.deepEqual(readdirSync(root), []);
});
