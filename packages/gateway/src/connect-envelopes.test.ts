// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { EnvelopeTracker, errorEnding, keepaliveMessage, streamCodec } from "./connect-envelopes.ts";

function message(flags: number, bytes: number): Buffer {
  const framed = Buffer.alloc(5 + bytes, 2);
  framed.writeUInt8(flags, 0);
  framed.writeUInt32BE(bytes, 1);
  return framed;
}

/** What the tracker says after each byte, when the stream comes in pieces of this size. */
function boundaries(stream: Buffer, pieceBytes: number): number[] {
  const tracker = new EnvelopeTracker();
  const found: number[] = [];
  for (let at = 0; at < stream.length; at += pieceBytes) {
    tracker.push(stream.subarray(at, at + pieceBytes));
    assert.equal(tracker.passedBytes, Math.min(stream.length, at + pieceBytes));
    if (tracker.between) found.push(tracker.passedBytes);
  }
  return found;
}

test("R-22: messages end where their lengths say, however the stream is cut into pieces", () => {
  const sizes = [0, 1, 7, 0, 300, 70_000];
  const stream = Buffer.concat(sizes.map((size, at) => message(at % 2, size)));
  const ends = sizes.map((_size, at) => sizes.slice(0, at + 1).reduce((sum, size) => sum + 5 + size, 0));
  assert.deepEqual(boundaries(stream, 1), ends);
  for (const pieceBytes of [2, 3, 5, 64, 4096]) {
    const wanted = ends.filter((end) => end % pieceBytes === 0 || end === stream.length);
    assert.deepEqual(boundaries(stream, pieceBytes), wanted);
  }
});

test("R-22: the end of the stream is known once its message has passed whole, empty or not", () => {
  for (const bytes of [0, 2, 500]) {
    const tracker = new EnvelopeTracker();
    tracker.push(message(0, 10));
    const last = message(2, bytes);
    for (const byte of last) {
      assert.equal(tracker.ended, false);
      tracker.push(Buffer.from([byte]));
    }
    assert.equal(tracker.ended, true);
  }
});

test("R-22: whatever bytes come, a tracker holds nothing of them and never fails", () => {
  const tracker = new EnvelopeTracker();
  const longest = Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]);
  tracker.push(longest);
  tracker.push(Buffer.alloc(1024 * 1024, 0xff));
  assert.deepEqual([tracker.between, tracker.ended], [false, false]);
});

test("R-22: what the gateway puts in is a message by itself, in either codec", () => {
  for (const kind of ["process", "watch"] as const) {
    for (const codec of ["json", "proto"] as const) {
      const tracker = new EnvelopeTracker();
      tracker.push(keepaliveMessage(kind, codec));
      assert.deepEqual([tracker.between, tracker.ended], [true, false]);
    }
  }
  const tracker = new EnvelopeTracker();
  const ending = errorEnding("aborted", "gone");
  tracker.push(ending);
  assert.equal(tracker.ended, true);
  assert.deepEqual(JSON.parse(ending.toString("utf8", 5)), { error: { code: "aborted", message: "gone" } });
});

test("R-22: only a Connect stream of unknown length is one", () => {
  const json = ["content-type", "application/connect+json"];
  assert.equal(streamCodec(200, json), "json");
  assert.equal(streamCodec(200, ["content-type", "application/connect+proto"]), "proto");
  assert.equal(streamCodec(415, json), undefined);
  assert.equal(streamCodec(200, [...json, "content-length", "7"]), undefined);
  assert.equal(streamCodec(200, ["content-type", "application/json"]), undefined);
  assert.equal(streamCodec(200, []), undefined);
});
