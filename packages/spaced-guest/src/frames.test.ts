// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  encodeFrame,
  FrameBuilder,
  FrameParser,
  maxFrameBytes,
  PayloadReader,
  ProtocolError,
} from "./frames.ts";

describe("frames", () => {
  it("come out whole, however the stream is cut", () => {
    const sizes = [0, 1, 4, 5, 6, 300, 70_000];
    const stream = Buffer.concat(sizes.map((size, type) => encodeFrame(type, Buffer.alloc(size, type))));
    for (const cut of [1, 2, 3, 7, 64, 65_536, stream.length]) {
      const found: [number, number][] = [];
      const parser = new FrameParser((type, payload) => {
        assert.ok(payload.every((byte) => byte === type));
        found.push([type, payload.length]);
      });
      for (let at = 0; at < stream.length; at += cut) parser.push(stream.subarray(at, at + cut));
      assert.deepEqual(
        found,
        sizes.map((size, type) => [type, size]),
        `cut every ${cut}`,
      );
    }
  });

  it("may not be longer than the limit", () => {
    const header = Buffer.alloc(5);
    header.writeUInt32LE(maxFrameBytes + 1);
    assert.throws(() => new FrameParser(() => undefined).push(header), ProtocolError);
    assert.throws(() => encodeFrame(1, Buffer.alloc(maxFrameBytes + 1)), ProtocolError);
    assert.throws(
      () =>
        new FrameBuilder()
          .begin(1)
          .raw(Buffer.alloc(maxFrameBytes + 1))
          .end(),
      ProtocolError,
    );
  });

  it("stop when asked to from inside, and give the rest away", () => {
    const parser = new FrameParser(() => {
      rest = parser.stop();
    });
    let rest = (): Buffer => Buffer.alloc(0);
    parser.push(Buffer.concat([encodeFrame(1), Buffer.from("raw bytes that look like nothing")]));
    assert.equal(rest().toString(), "raw bytes that look like nothing");
  });

  it("carry every kind of field, also across the growth of their buffer", () => {
    for (let filler = 0; filler < 40; filler += 1) {
      const text = "x".repeat(filler);
      const frame = new FrameBuilder(8).begin(9).string(text).u8(1).u16(2).u32(3).i32(-4).u64(5n).i64(-6n);
      const bytes = frame
        .string("ü")
        .bytes(Buffer.from([7]))
        .end()
        .finish();
      let seen = 0;
      new FrameParser((type, payload) => {
        const reader = new PayloadReader(payload);
        assert.equal(type, 9);
        assert.equal(reader.string(), text);
        assert.deepEqual([reader.u8(), reader.u16(), reader.u32(), reader.i32()], [1, 2, 3, -4]);
        assert.deepEqual([reader.u64(), reader.i64(), reader.string()], [5n, -6n, "ü"]);
        assert.deepEqual([...reader.bytes()], [7]);
        assert.ok(reader.atEnd);
        assert.throws(() => reader.u8(), ProtocolError);
        seen += 1;
      }).push(bytes);
      assert.equal(seen, 1);
    }
  });

  it("are not read past the end of a payload, whatever a length says", () => {
    const lie = Buffer.from([255, 255, 255, 127, 1]);
    assert.throws(() => new PayloadReader(lie).string(), ProtocolError);
    assert.throws(() => new PayloadReader(lie).bytes(), ProtocolError);
    assert.throws(() => new PayloadReader(lie).fixed(6), ProtocolError);
  });
});
