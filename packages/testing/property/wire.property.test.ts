// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import {
  decodeJson,
  encodeHeader,
  encodeJson,
  type Frame,
  FrameLink,
  FrameReader,
  type FrameType,
  type LinkStream,
  parseAnswerHead,
  parseHostOperationHead,
  parseOperationHead,
  relayTo,
  type StreamHandlers,
  streamWindowBytes,
} from "@space/wire";
import fc from "fast-check";
import { settle } from "../src/virtual-clock.ts";

const frames = fc.array(
  fc.record({
    type: fc.integer({ min: 1, max: 12 }),
    stream: fc.integer({ min: 0, max: 0xffff_ffff }),
    payload: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 1000, maxLength: 5000 })),
  }),
  { maxLength: 12 },
);
const cuts = fc.array(fc.nat(), { maxLength: 40 });

/** The bytes in pieces, cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...places.map((place) => place % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

it("frames are read as they were written, however the bytes are cut", () => {
  fc.assert(
    fc.property(frames, cuts, (written, places) => {
      const bytes = Buffer.concat(
        written.flatMap(({ type, stream, payload }) => [
          encodeHeader(type as FrameType, stream, payload.length),
          Buffer.from(payload),
        ]),
      );
      const reader = new FrameReader();
      const read: Frame[] = [];
      for (const piece of cut(bytes, places)) reader.push(piece, (frame) => read.push(frame));
      assert.deepEqual(
        read.map(({ type, stream, payload }) => ({ type, stream, payload: Buffer.from(payload) })),
        written.map(({ type, stream, payload }) => ({ type, stream, payload: Buffer.from(payload) })),
      );
    }),
    { numRuns: 500 },
  );
});

it("any bytes are frames, or end the reader with link/protocol", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), cuts, (bytes, places) => {
      const reader = new FrameReader();
      try {
        for (const piece of cut(Buffer.from(bytes), places)) reader.push(piece, () => undefined);
      } catch (error) {
        assert.ok(isSpaceError(error, "link/protocol"));
      }
    }),
    { numRuns: 500 },
  );
});

const silent: StreamHandlers = { onData: () => undefined, onEnd: () => undefined, onReset: () => undefined };

it("whatever a peer sends, the link serves it or ends with link/protocol, and no handler has a bug", async () => {
  const smallFrames = fc.array(
    fc.record({
      type: fc.integer({ min: 0, max: 13 }),
      stream: fc.constantFrom(0, 1, 2, 3, 4, 5),
      payload: fc.uint8Array({ maxLength: 6 }),
    }),
    { maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(smallFrames, async (sent) => {
      const [near, far] = duplexPair();
      const causes: unknown[] = [];
      const bugs: unknown[] = [];
      const link = new FrameLink(far, {
        dialled: false,
        onOpen: () => silent,
        onClose: (cause) => causes.push(cause),
        onBug: (error) => bugs.push(error),
      });
      link.open("", silent, false);
      link.open("", silent, true);
      near.resume();
      for (const { type, stream, payload } of sent) {
        near.write(Buffer.concat([encodeHeader(type as FrameType, stream, payload.length), payload]));
      }
      await settle(6);
      assert.deepEqual(bugs, []);
      assert.ok(causes.every((cause) => isSpaceError(cause, "link/protocol")));
      link.destroy(undefined);
      assert.equal(link.size, 0);
    }),
    { numRuns: 300 },
  );
});

/** Takes in what comes at a pace of its own: gives back credit for `step` chunks after every `step` chunks. */
class Reader implements StreamHandlers {
  readonly chunks: Buffer[] = [];
  ended = false;
  stream: LinkStream | undefined;
  #owed = 0;
  onData(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.#owed += chunk.length;
    setImmediate(() => {
      this.stream?.consumed(this.#owed);
      this.#owed = 0;
    });
  }
  onEnd(): void {
    this.ended = true;
  }
  onReset(): void {
    this.ended = true;
  }
}

it("bytes cross a relay of two links once and in order, whatever their sizes, and the window is never exceeded", async () => {
  const sizes = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 0, max: 3 * streamWindowBytes })),
    { maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const reader = new Reader();
      const causes: unknown[] = [];
      const onClose = (cause: unknown): void => void causes.push(cause);
      const first = duplexPair();
      const second = duplexPair();
      new FrameLink(second[1], {
        dialled: false,
        onClose,
        onOpen: (stream) => {
          reader.stream = stream;
          return reader;
        },
      });
      const onward = new FrameLink(second[0], { dialled: true, onClose });
      new FrameLink(first[1], {
        dialled: false,
        onClose,
        onOpen: (from) => {
          const to: LinkStream = onward.open(
            "",
            { ...silent, onDrain: () => relay.onDrainOfTarget() },
            false,
          );
          const relay = relayTo(from, to);
          return relay;
        },
      });
      const sender = new FrameLink(first[0], { dialled: true, onClose }).open("", silent, false);
      const chunks = lengths.map((length, at) => Buffer.alloc(length, at + 1));
      for (const chunk of chunks) sender.send(chunk);
      sender.end();
      for (let turn = 0; turn < 100 && !reader.ended; turn += 1) await settle();
      assert.ok(Buffer.concat(reader.chunks).equals(Buffer.concat(chunks)));
      assert.deepEqual(causes, []);
    }),
    { numRuns: 60 },
  );
});

it("what is written as JSON is read back, whatever its names are", () => {
  const names = fc.oneof(
    fc.string({ maxLength: 5 }),
    fc.constantFrom("$bigint", "$$bigint", "$", "__proto__"),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, 1.5, "x", 12n, -(2n ** 60n)),
      fc.array(tie("value"), { maxLength: 3 }),
      fc
        .array(fc.tuple(names, tie("value")), { maxLength: 3 })
        .map((entries) => Object.fromEntries(entries) as object),
    ),
  }));
  fc.assert(
    fc.property(value, (written) => {
      assert.deepEqual(decodeJson(encodeJson(written)), written);
    }),
    { numRuns: 1000 },
  );
});

it("any head is read, or refused with a typed error", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(parseOperationHead, parseHostOperationHead, parseAnswerHead),
      fc.jsonValue(),
      (parse, value) => {
        try {
          parse(value);
        } catch (error) {
          assert.ok(
            isSpaceError(error, "link/protocol") || isSpaceError(error, "input/invalid"),
            String(error),
          );
        }
      },
    ),
    { numRuns: 500 },
  );
});
