// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { restartClose, WebSocketFrames } from "./websocket-frames.ts";

function frame(payloadBytes: number, masked: boolean): Buffer {
  const mask = masked ? 0x80 : 0;
  const head =
    payloadBytes < 126
      ? Buffer.from([0x82, mask | payloadBytes])
      : Buffer.from([0x82, mask | (payloadBytes < 65_536 ? 126 : 127), ...lengthOf(payloadBytes)]);
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0, 7), Buffer.alloc(payloadBytes, 0xff)]);
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(bytes < 65_536 ? 2 : 8);
  if (bytes < 65_536) length.writeUInt16BE(bytes);
  else length.writeBigUInt64BE(BigInt(bytes));
  return length;
}

test("R-22: frames end where their lengths say, of every form of length, masked or not, however they are cut", () => {
  for (const masked of [false, true]) {
    const frames = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000].map((bytes) => frame(bytes, masked));
    const stream = Buffer.concat(frames);
    const ends = new Set(frames.map((_frame, at) => Buffer.concat(frames.slice(0, at + 1)).length));
    const tracker = new WebSocketFrames();
    for (let at = 0; at < stream.length; at += 1) {
      tracker.push(stream.subarray(at, at + 1));
      assert.equal(tracker.between, ends.has(at + 1), `after byte ${at + 1}`);
    }
    const whole = new WebSocketFrames();
    whole.push(stream);
    assert.equal(whole.between, true);
  }
});

test("R-22: a length beyond every number only means that no frame ends any more", () => {
  const tracker = new WebSocketFrames();
  tracker.push(Buffer.from([0x82, 127, ...Buffer.alloc(8, 0xff)]));
  tracker.push(Buffer.alloc(1024 * 1024));
  assert.equal(tracker.between, false);
});

test("R-22: the close frame is a server's, with 1012", () => {
  assert.deepEqual([...restartClose()], [0x88, 2, 0x03, 0xf4]);
  const tracker = new WebSocketFrames();
  tracker.push(restartClose());
  assert.equal(tracker.between, true);
});
