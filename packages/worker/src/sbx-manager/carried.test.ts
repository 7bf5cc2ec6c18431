// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { takeApart, withCarried } from "./carried.ts";

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function whole(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces);
}

const archive = Buffer.from("an archive of a driver's");
const carried = Buffer.from("what a bridge knows");

it("R-22: what was put before an archive comes out again, however it is cut, and the archive unchanged", async () => {
  for (const known of [carried, Buffer.alloc(0), undefined]) {
    const bytes = await whole(withCarried(known, inPieces(archive, 7)));
    for (let size = 1; size <= bytes.length; size += 1) {
      const taken = await takeApart(inPieces(bytes, size));
      assert.deepEqual(taken.carried, known);
      assert.deepEqual(await whole(taken.archive), archive);
    }
  }
});

it("refuses what ends too soon, or says that it is too long", async () => {
  const bytes = await whole(withCarried(carried, inPieces(archive, 7)));
  const tooLong = Buffer.from(bytes);
  tooLong.writeUInt32BE(2 ** 31, "space-carried/1\n".length);
  for (const bad of [bytes.subarray(0, 16), bytes.subarray(0, 19), bytes.subarray(0, 30), tooLong])
    await assert.rejects(takeApart(inPieces(bad, 5)), (error) => isSpaceError(error, "snapshot/refused"));
});

it("lets go of the source, read or not", async () => {
  let closed = 0;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      yield await whole(withCarried(carried, inPieces(archive, 7)));
      yield archive;
    } finally {
      closed += 1;
    }
  }
  await (await takeApart(source())).close();
  assert.equal(closed, 1);
});
