// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { encodeHeader, type Frame, FrameReader, frameHeaderBytes, framePayloadLimitBytes } from "./frame.ts";

const encode = (stream: number, payload: Buffer): Buffer =>
  Buffer.concat([encodeHeader(4, stream, payload.length), payload]);

function read(pieces: readonly Buffer[]): Frame[] {
  const reader = new FrameReader();
  const frames: Frame[] = [];
  for (const piece of pieces) reader.push(piece, (frame) => frames.push(frame));
  return frames;
}

it("writes the payload's length, the type and the stream, big-endian", () => {
  assert.deepEqual([...encodeHeader(6, 0x01020304, 0x0a0b0c)], [0, 10, 11, 12, 6, 1, 2, 3, 4]);
});

it("reads frames that come together, and frames that come byte by byte", () => {
  const whole = Buffer.concat([
    encode(1, Buffer.from("ab")),
    encode(2, Buffer.alloc(0)),
    encode(3, Buffer.from("c")),
  ]);
  const bytes = [...whole].map((byte) => Buffer.from([byte]));
  for (const pieces of [[whole], bytes]) {
    const frames = read(pieces).map(({ type, stream, payload }) => [type, stream, payload.toString()]);
    assert.deepEqual(frames, [
      [4, 1, "ab"],
      [4, 2, ""],
      [4, 3, "c"],
    ]);
  }
});

it("reads the longest frame in small pieces, and what follows it", () => {
  const long = Buffer.alloc(framePayloadLimitBytes, 7);
  const whole = Buffer.concat([encode(1, long), encode(2, Buffer.from("z"))]);
  const pieces: Buffer[] = [];
  for (let at = 0; at < whole.length; at += 1000) pieces.push(whole.subarray(at, at + 1000));
  const [first, second] = read(pieces);
  assert.ok(first?.payload.equals(long));
  assert.equal(second?.payload.toString(), "z");
});

it("refuses a frame above the limit by its header alone", () => {
  const header = encodeHeader(4, 1, framePayloadLimitBytes + 1);
  assert.equal(header.length, frameHeaderBytes);
  assert.throws(
    () => read([header]),
    (error) => isSpaceError(error, "link/protocol"),
  );
});
