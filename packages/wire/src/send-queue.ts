// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Writable } from "node:stream";
import { type FrameType, frameHeaderBytes, frameType, retypeFrame, writeFrameHeader } from "./frame.ts";

/** Payloads up to this are copied beside each other and leave in one write; a longer one is a write of its own. */
const copyLimitBytes = 16 * 1024;
const slabBytes = 64 * 1024;
/** With less room left than this after a write, the next frames begin in new memory: so they are one piece. */
const roomBytes = 8 * 1024;

const none = Buffer.alloc(0);

/** Frames that leave together at the end of the turn of the event loop. */
export class SendQueue {
  readonly #socket: Writable;
  /** Memory for frames, filled from its beginning. What was written to the socket is never changed again. */
  #slab: Buffer = none;
  #used = 0;
  /** Where, in the slab, the bytes begin that are no piece yet. */
  #from = 0;
  #pieces: Buffer[] = [];
  #queuedBytes = 0;
  /** The last frame, while its header can still be changed. */
  #lastAt = -1;
  #lastStream = 0;

  constructor(socket: Writable) {
    this.#socket = socket;
  }

  /** Bytes that the kernel has not taken yet, those of this turn included. */
  get backlogBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Adds a frame; a buffer must not be changed afterwards. */
  add(type: FrameType, stream: number, payload: Buffer | string | undefined): void {
    if (type === frameType.end && this.#endsLast(stream)) return;
    const payloadBytes = typeof payload === "string" ? Buffer.byteLength(payload) : (payload?.length ?? 0);
    const isCopied = typeof payload === "string" || payloadBytes <= copyLimitBytes;
    const at = this.#reserve(frameHeaderBytes + (isCopied ? payloadBytes : 0));
    writeFrameHeader(this.#slab, at, { type, stream, payloadBytes });
    const payloadAt = at + frameHeaderBytes;
    if (typeof payload === "string") this.#slab.write(payload, payloadAt, payloadBytes, "utf8");
    else if (isCopied) payload?.copy(this.#slab, payloadAt);
    else this.#addLong(payload);
    this.#queuedBytes += frameHeaderBytes + payloadBytes;
    this.#lastAt = type === frameType.data ? at : -1;
    this.#lastStream = stream;
  }

  /** Writes everything to the socket. */
  flush(): void {
    this.#closePiece();
    const pieces = this.#pieces;
    this.clear();
    if (this.#slab.length - this.#used < roomBytes) this.#slab = none;
    const [only] = pieces;
    if (pieces.length === 1) {
      this.#socket.write(only);
      return;
    }
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  clear(): void {
    this.#pieces = [];
    this.#queuedBytes = 0;
    this.#from = this.#used;
    this.#lastAt = -1;
  }

  /** An end right after its stream's bytes joins their frame: most answers are so. */
  #endsLast(stream: number): boolean {
    if (this.#lastAt < 0 || this.#lastStream !== stream) return false;
    retypeFrame(this.#slab, this.#lastAt, frameType.dataEnd);
    this.#lastAt = -1;
    return true;
  }

  #addLong(payload: Buffer | undefined): void {
    this.#closePiece();
    if (payload !== undefined) this.#pieces.push(payload);
  }

  /** Room for so many bytes in the slab. Returns where. */
  #reserve(bytes: number): number {
    if (this.#slab.length - this.#used < bytes) {
      this.#closePiece();
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, bytes));
      this.#used = 0;
      this.#from = 0;
    }
    const at = this.#used;
    this.#used += bytes;
    return at;
  }

  #closePiece(): void {
    if (this.#used > this.#from) this.#pieces.push(this.#slab.subarray(this.#from, this.#used));
    this.#from = this.#used;
  }
}
