// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Writable } from "node:stream";
import { encodeHeader, type FrameType, frameHeaderBytes } from "./frame.ts";

/** Frames shorter than this are joined into one write. */
const joinLimitBytes = 16 * 1024;

/** Frames that leave together at the end of the turn of the event loop. */
export class SendQueue {
  readonly #socket: Writable;
  #pieces: Buffer[] = [];
  #queuedBytes = 0;

  constructor(socket: Writable) {
    this.#socket = socket;
  }

  /** Bytes that the kernel has not taken yet, those of this turn included. */
  get backlogBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  add(type: FrameType, stream: number, payload: Buffer | undefined): void {
    const payloadBytes = payload?.length ?? 0;
    this.#pieces.push(encodeHeader(type, stream, payloadBytes));
    if (payload !== undefined && payloadBytes > 0) this.#pieces.push(payload);
    this.#queuedBytes += frameHeaderBytes + payloadBytes;
  }

  /** Writes everything to the socket. */
  flush(): void {
    const pieces = this.#pieces;
    this.clear();
    this.#socket.cork();
    let small: Buffer[] = [];
    for (const piece of pieces) {
      if (piece.length <= joinLimitBytes) {
        small.push(piece);
        continue;
      }
      this.#writeJoined(small);
      small = [];
      this.#socket.write(piece);
    }
    this.#writeJoined(small);
    this.#socket.uncork();
  }

  clear(): void {
    this.#pieces = [];
    this.#queuedBytes = 0;
  }

  #writeJoined(pieces: readonly Buffer[]): void {
    const [first] = pieces;
    if (first !== undefined) this.#socket.write(pieces.length === 1 ? first : Buffer.concat(pieces));
  }
}
