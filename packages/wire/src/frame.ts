// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/**
 * The frame of every internal hop: `u32 payload length, u8 type, u32 stream`, big-endian, then the payload.
 * Streams opened by the dialling side have odd ids, by the accepting side even ones.
 */
export const frameHeaderBytes = 9;
/** Longest payload of one frame. A longer one ends the link. */
export const framePayloadLimitBytes: number = 1024 * 1024;
/** Longest head, either way: one frame. Headers have their own, lower limits at the edge. */
export const headLimitBytes: number = framePayloadLimitBytes;

export const frameType = {
  /** Opens a stream; payload: the opener's head. */
  open: 1,
  /** As `open`, and the opener has nothing more to send. */
  openEnd: 2,
  /** The acceptor's head, once. */
  head: 3,
  data: 4,
  end: 5,
  /** Ends both directions at once; payload: a reason word. */
  reset: 6,
  /** Payload u32: bytes that the receiver has consumed. */
  credit: 7,
  ping: 8,
  pong: 9,
  /** As `head`, and the acceptor has nothing more to send. */
  headEnd: 10,
  /** the acceptor has admitted the operation and wants its body; payload: the admission id. Before the head, once. */
  proceed: 11,
  /** As `data`, and its sender has nothing more to send. */
  dataEnd: 12,
} as const;
export type FrameType = (typeof frameType)[keyof typeof frameType];

export interface Frame {
  readonly type: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface FrameHeader {
  readonly type: FrameType;
  readonly stream: number;
  readonly payloadBytes: number;
}

/** Writes a header at `at`; there must be room for `frameHeaderBytes`. */
export function writeFrameHeader(
  into: Buffer,
  at: number,
  { type, stream, payloadBytes }: FrameHeader,
): void {
  into[at] = payloadBytes >>> 24;
  into[at + 1] = payloadBytes >>> 16;
  into[at + 2] = payloadBytes >>> 8;
  into[at + 3] = payloadBytes;
  into[at + 4] = type;
  into[at + 5] = stream >>> 24;
  into[at + 6] = stream >>> 16;
  into[at + 7] = stream >>> 8;
  into[at + 8] = stream;
}

/** Changes the type of the frame whose header is at `at`. */
export function retypeFrame(into: Buffer, at: number, type: FrameType): void {
  into[at + 4] = type;
}

export function encodeHeader(type: FrameType, stream: number, payloadBytes: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  writeFrameHeader(header, 0, { type, stream, payloadBytes });
  return header;
}

const noBytes = Buffer.alloc(0);

/**
 * Cuts a byte stream into frames. Payloads are views into the bytes pushed, valid as long as the caller keeps them.
 * Throws `link/protocol` for a frame above the limit: the link cannot be used after that.
 */
export class FrameReader {
  #held: Buffer | undefined;
  /** Large frames are gathered in pieces and joined once, so that many small reads cost no quadratic copying. */
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #wantedBytes = 0;

  push(bytes: Buffer, onFrame: (frame: Frame) => void): void {
    const whole = this.#join(bytes);
    if (whole === undefined) return;
    let at = 0;
    while (whole.length - at >= frameHeaderBytes) {
      const length = whole.readUInt32BE(at);
      if (length > framePayloadLimitBytes)
        throw new SpaceError("link/protocol", { problem: "frame too long" });
      const end = at + frameHeaderBytes + length;
      if (end > whole.length) {
        this.#wantedBytes = frameHeaderBytes + length;
        break;
      }
      onFrame({
        type: whole.readUInt8(at + 4),
        stream: whole.readUInt32BE(at + 5),
        payload: length === 0 ? noBytes : whole.subarray(at + frameHeaderBytes, end),
      });
      at = end;
    }
    if (at < whole.length) this.#held = whole.subarray(at);
  }

  /** The bytes to parse: what was held with what came; undefined while a known frame is still incomplete. */
  #join(bytes: Buffer): Buffer | undefined {
    if (this.#held !== undefined) {
      this.#gathered.push(this.#held);
      this.#gatheredBytes += this.#held.length;
      this.#held = undefined;
    }
    if (this.#gathered.length === 0) return bytes;
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
    if (this.#gatheredBytes < this.#wantedBytes) return undefined;
    const whole = Buffer.concat(this.#gathered, this.#gatheredBytes);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#wantedBytes = 0;
    return whole;
  }
}
