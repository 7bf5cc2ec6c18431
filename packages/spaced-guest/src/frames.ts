// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Longest payload either side accepts; a longer length field ends the connection. */
export const maxFrameBytes: number = 1024 * 1024;

/** Bytes before a payload: `u32 length, u8 type`. */
export const frameHeaderBytes = 5;

/** A peer broke the framing or sent a frame that has no meaning here. Always fatal for the connection. */
export class ProtocolError extends Error {
  override readonly name: string = "ProtocolError";
}

/** Called for each whole frame. The payload is a view of received memory that nobody reuses: it may be kept. */
export type FrameHandler = (type: number, payload: Buffer) => void;

/**
 * Cuts a byte stream into frames. Frames that lie inside one chunk are handed out as views, without copying.
 * `push` throws `ProtocolError` on an oversized length; the parser must not be used afterwards.
 */
export class FrameParser {
  readonly #onFrame: FrameHandler;
  #parts: Buffer[] = [];
  #held = 0;
  #wanted = frameHeaderBytes;
  #stopped = false;

  constructor(onFrame: FrameHandler) {
    this.#onFrame = onFrame;
  }

  push(chunk: Buffer): void {
    let data = chunk;
    if (this.#held > 0) {
      this.#parts.push(chunk);
      this.#held += chunk.length;
      if (this.#held < this.#wanted) return;
      data = Buffer.concat(this.#parts, this.#held);
      this.#parts = [];
      this.#held = 0;
    }
    let offset = 0;
    while (!this.#stopped && data.length - offset >= frameHeaderBytes) {
      const length = data.readUInt32LE(offset);
      if (length > maxFrameBytes) throw new ProtocolError("frame too long");
      const end = offset + frameHeaderBytes + length;
      if (end > data.length) {
        this.#wanted = end - offset;
        break;
      }
      const type = data[offset + 4] ?? 0;
      const payload = data.subarray(offset + frameHeaderBytes, end);
      offset = end;
      this.#onFrame(type, payload);
    }
    if (offset === data.length) {
      this.#wanted = frameHeaderBytes;
      return;
    }
    const rest = data.subarray(offset);
    if (rest.length < frameHeaderBytes) this.#wanted = frameHeaderBytes;
    this.#parts.push(rest);
    this.#held = rest.length;
  }

  /** Ends parsing (also from inside the handler) and returns the bytes received after the last whole frame. */
  stop(): () => Buffer {
    this.#stopped = true;
    return () => Buffer.concat(this.#parts, this.#held);
  }
}

/** Reads fields of a payload in order; throws `ProtocolError` past its end. */
export class PayloadReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  #take(length: number): number {
    const at = this.#offset;
    if (length > this.#bytes.length - at) throw new ProtocolError("payload too short");
    this.#offset = at + length;
    return at;
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1));
  }

  u16(): number {
    return this.#bytes.readUInt16LE(this.#take(2));
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }

  i32(): number {
    return this.#bytes.readInt32LE(this.#take(4));
  }

  u64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#take(8));
  }

  i64(): bigint {
    return this.#bytes.readBigInt64LE(this.#take(8));
  }

  fixed(length: number): Buffer {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  bytes(): Buffer {
    return this.fixed(this.u32());
  }

  string(): string {
    const length = this.u32();
    const at = this.#take(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  rest(): Buffer {
    return this.fixed(this.#bytes.length - this.#offset);
  }
}

/** Builds one or more frames in a single growing buffer, so that a request leaves in one write. */
export class FrameBuilder {
  #bytes: Buffer;
  #length = 0;
  #frameStart = 0;

  constructor(initialBytes = 256) {
    this.#bytes = Buffer.allocUnsafe(initialBytes);
  }

  /** Where `extra` more bytes go. To be called before `#bytes` is read: growing replaces it. */
  #grow(extra: number): number {
    const at = this.#length;
    const needed = at + extra;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, at);
      this.#bytes = larger;
    }
    this.#length = needed;
    return at;
  }

  begin(type: number): this {
    this.#frameStart = this.#grow(frameHeaderBytes);
    this.#bytes[this.#frameStart + 4] = type;
    return this;
  }

  /** Fills in the length of the frame begun last. */
  end(): this {
    const length = this.#length - this.#frameStart - frameHeaderBytes;
    if (length > maxFrameBytes) throw new ProtocolError("frame too long");
    this.#bytes.writeUInt32LE(length, this.#frameStart);
    return this;
  }

  u8(value: number): this {
    const at = this.#grow(1);
    this.#bytes.writeUInt8(value, at);
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2);
    this.#bytes.writeUInt16LE(value, at);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4);
    this.#bytes.writeUInt32LE(value, at);
    return this;
  }

  i32(value: number): this {
    const at = this.#grow(4);
    this.#bytes.writeInt32LE(value, at);
    return this;
  }

  u64(value: bigint): this {
    const at = this.#grow(8);
    this.#bytes.writeBigUInt64LE(value, at);
    return this;
  }

  i64(value: bigint): this {
    const at = this.#grow(8);
    this.#bytes.writeBigInt64LE(value, at);
    return this;
  }

  raw(value: Uint8Array): this {
    const at = this.#grow(value.length);
    this.#bytes.set(value, at);
    return this;
  }

  bytes(value: Uint8Array): this {
    return this.u32(value.length).raw(value);
  }

  string(value: string): this {
    const length = Buffer.byteLength(value);
    this.u32(length);
    const at = this.#grow(length);
    this.#bytes.write(value, at, "utf8");
    return this;
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}

/** A whole frame as one buffer. */
export function encodeFrame(type: number, payload: Uint8Array = new Uint8Array(0)): Buffer {
  if (payload.length > maxFrameBytes) throw new ProtocolError("frame too long");
  const frame = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame[4] = type;
  frame.set(payload, frameHeaderBytes);
  return frame;
}
