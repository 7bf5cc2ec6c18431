// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { gzipSync } from "node:zlib";
import { decompress, EnvelopeReader, endOfStream, envelope, messageLimitBytes } from "./connect-envelope.ts";
import { EnvdError } from "./envd-error.ts";

const refusal = (code: string) => (error: unknown) => error instanceof EnvdError && error.code === code;

function readerOf(...chunks: Buffer[]): EnvelopeReader {
  return new EnvelopeReader(async () => chunks.shift());
}

it("reads messages however they are cut", async () => {
  const bytes = Buffer.concat([
    envelope(Buffer.from("one")),
    envelope(Buffer.alloc(0)),
    envelope(Buffer.from("three"), 1),
  ]);
  for (const size of [1, 2, 7, bytes.length]) {
    const chunks: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
    const reader = readerOf(...chunks);
    assert.equal((await reader.next())?.message.toString(), "one");
    assert.equal((await reader.next())?.message.length, 0);
    const third = await reader.next();
    assert.deepEqual([third?.message.toString(), third?.compressed], ["three", true]);
    assert.equal(await reader.next(), undefined);
  }
});

it("refuses what is cut off, too long, or flagged as nothing known", async () => {
  await assert.rejects(readerOf(Buffer.from([0, 0, 0])).next(), refusal("invalid_argument"));
  await assert.rejects(readerOf(Buffer.from([0, 0, 0, 0, 5, 1])).next(), refusal("invalid_argument"));
  await assert.rejects(readerOf(Buffer.from([2, 0, 0, 0, 0])).next(), refusal("invalid_argument"));
  const long = Buffer.alloc(5);
  long.writeUInt32BE(messageLimitBytes + 1, 1);
  await assert.rejects(readerOf(long).next(), refusal("resource_exhausted"));
});

it("ends a stream with JSON, and with the error when there is one", () => {
  assert.deepEqual(endOfStream(undefined), Buffer.from("\x02\0\0\0\x02{}", "latin1"));
  const ended = endOfStream(new EnvdError("not_found", "gone"));
  assert.deepEqual(JSON.parse(ended.toString("utf8", 5)), { error: { code: "not_found", message: "gone" } });
});

it("undoes gzip within the limit, and nothing else", async () => {
  assert.equal((await decompress(gzipSync("text"), "gzip")).toString(), "text");
  assert.equal((await decompress(Buffer.from("text"), "identity")).toString(), "text");
  await assert.rejects(decompress(Buffer.from("text"), "gzip"), refusal("invalid_argument"));
  await assert.rejects(decompress(Buffer.from("text"), "zstd"), refusal("unimplemented"));
  const bomb = gzipSync(Buffer.alloc(messageLimitBytes + 1));
  await assert.rejects(decompress(bomb, "gzip"), refusal("resource_exhausted"));
});
