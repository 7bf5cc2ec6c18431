// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CutClass, cutArchive, cutClasses } from "./cut-archive.ts";
import { seeded, tenantKey } from "./tenant.fixture.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

const secrets = new TenantSecrets(tenantKey("a"));
const table = (): Int32Array => secrets.cutTable;
const short: readonly CutClass[] = [
  { untilChunk: Number.POSITIVE_INFINITY, bits: 8, minBytes: 64, maxBytes: 1024 },
];

async function* pieces(content: Uint8Array, lengthAt: (at: number) => number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < content.length; ) {
    const length = lengthAt(at);
    yield content.subarray(at, at + length);
    at += length;
  }
}

async function cut(
  content: Uint8Array,
  classes = short,
  lengthAt: (at: number) => number = () => 500,
): Promise<readonly Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of cutArchive(pieces(content, lengthAt), table, classes)) chunks.push(chunk);
  return chunks;
}

const content = Buffer.from(seeded("archive").bytes(100_000));

test("gives every byte once, in order, in chunks of permitted lengths", async () => {
  const chunks = await cut(content);
  assert.deepEqual(Buffer.concat(chunks), content);
  const lengths = chunks.slice(0, -1).map(({ length }) => length);
  assert.ok(Math.min(...lengths) >= 64 && Math.max(...lengths) <= 1024);
  assert.ok(chunks.length > 200 && chunks.length < 500);
});

test("cuts the same however the bytes arrive", async () => {
  const once = await cut(content);
  for (const length of [1, 7, 64, 1023, 5000, 100_000])
    assert.deepEqual(await cut(content, short, () => length), once);
});

test("an insertion changes the chunks around it and no others", async () => {
  const before = new Set((await cut(content)).map((chunk) => chunk.toString("hex")));
  const grown = Buffer.concat([
    content.subarray(0, 50_000),
    Buffer.from("inserted"),
    content.subarray(50_000),
  ]);
  const after = await cut(grown);
  const fresh = after.filter((chunk) => !before.has(chunk.toString("hex")));
  assert.ok(fresh.length >= 1 && fresh.length <= 4);
});

test("nothing has no chunk, and little has one, for which nothing is looked up", async () => {
  const refuse = (): never => assert.fail("the table is not needed");
  assert.deepEqual(await cut(Buffer.alloc(0)), []);
  const chunks: Buffer[] = [];
  for await (const chunk of cutArchive(
    pieces(Buffer.from("few"), () => 1),
    refuse,
  ))
    chunks.push(chunk);
  assert.deepEqual(chunks, [Buffer.from("few")]);
});

test("what never says where to cut is cut at the longest, without an empty chunk at the end", async () => {
  const chunks = await cut(Buffer.alloc(4096));
  assert.equal(Buffer.concat(chunks).length, 4096);
  assert.ok(chunks.every(({ length }) => length > 0 && length <= 1024));
});

test("another tenant's cuts are others", async () => {
  const others: Buffer[] = [];
  const foreign = new TenantSecrets(tenantKey("b"));
  for await (const chunk of cutArchive(
    pieces(content, () => 500),
    () => foreign.cutTable,
    short,
  ))
    others.push(chunk);
  const lengths = (chunks: readonly Buffer[]): readonly number[] => chunks.map(({ length }) => length);
  assert.notDeepEqual(lengths(others), lengths(await cut(content)));
});

test("later chunks are longer, and a later class cuts only where an earlier one would", async () => {
  const growing: readonly CutClass[] = [
    { untilChunk: 20, bits: 6, minBytes: 32, maxBytes: 256 },
    { untilChunk: Number.POSITIVE_INFINITY, bits: 9, minBytes: 256, maxBytes: 2048 },
  ];
  const chunks = await cut(content, growing);
  const mean = (some: readonly Buffer[]): number => Buffer.concat(some).length / some.length;
  assert.ok(mean(chunks.slice(20)) > 4 * mean(chunks.slice(0, 20)));
  for (const [at, { bits }] of cutClasses.entries()) assert.ok(bits > (cutClasses[at - 1]?.bits ?? 0));
});

test("the longest list of chunks holds 11 GB of random content on average, and 7 GB of any", () => {
  let [mean, least, left] = [0, 0, 2800];
  let begun = 0;
  for (const { untilChunk, bits, minBytes, maxBytes } of cutClasses) {
    const count = Math.min(left, untilChunk - begun);
    const spread = 2 ** bits;
    mean += count * (minBytes + spread * (1 - Math.exp(-(maxBytes - minBytes) / spread)));
    least += count * minBytes;
    left -= count;
    begun += count;
  }
  assert.ok(mean > 11 * 2 ** 30);
  assert.ok(least > 7 * 10 ** 9);
});
