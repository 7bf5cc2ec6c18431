// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import { enveloped, readMessages, type StreamItem } from "./message-stream.ts";

async function read(...pieces: readonly Uint8Array[]): Promise<readonly StreamItem[]> {
  const items: StreamItem[] = [];
  for await (const item of readMessages(
    (async function* () {
      yield* pieces;
    })(),
  ))
    items.push(item);
  return items;
}

function end(message: unknown): Buffer {
  const bytes = enveloped(message);
  bytes.writeUInt8(2, 0);
  return bytes;
}

describe("messages of a Connect stream", () => {
  const whole = Buffer.concat([enveloped({ n: 1 }), enveloped({ text: "ü" }), end({})]);
  const expected = [
    { kind: "message", message: { n: 1 } },
    { kind: "message", message: { text: "ü" } },
    { kind: "end", error: undefined },
  ];

  it("come whole wherever the bytes were cut", async () => {
    for (let at = 0; at <= whole.length; at += 1)
      assert.deepEqual(await read(whole.subarray(0, at), whole.subarray(at)), expected);
    assert.deepEqual(await read(...[...whole].map((byte) => Buffer.of(byte))), expected);
  });

  it("end with the agent's error", async () => {
    const error = { code: "not_found", message: "no such program" };
    assert.deepEqual(await read(end({ error })), [{ kind: "end", error }]);
  });

  it("are told from a stream that breaks off, at every byte before its end", async () => {
    for (let at = 0; at < whole.length; at += 1)
      await assert.rejects(read(whole.subarray(0, at)), (error) => isSpaceError(error, "link/closed"));
  });

  it("are refused when they are none, or larger than any", async () => {
    const list = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{x")]);
    await assert.rejects(read(list), (error) => isSpaceError(error, "link/protocol"));
    const large = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
    await assert.rejects(read(large), (error) => isSpaceError(error, "input/too-large"));
  });
});
