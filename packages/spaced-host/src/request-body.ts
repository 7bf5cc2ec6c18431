// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { EnvdError } from "./envd-error.ts";

/** The caller has gone: whatever was being done for him stops, and nobody is told. */
export class CallerGone extends Error {
  override readonly name: string = "CallerGone";
}

/** Bytes of a refused body that are still read and dropped before the stream is reset. */
const discardLimitBytes = 64 * 1024 * 1024;

type Waiting = { readonly resolve: () => void; readonly reject: (error: CallerGone) => void };

/**
 * A request's body as it arrives. It is pulled chunk by chunk; a chunk is given back to the sender's window when the
 * next one is asked for, so at most the window and one frame are ever held.
 */
export class RequestBody {
  readonly #consumed: (bytes: number) => void;
  readonly #overflow: () => void;
  #chunks: Buffer[] = [];
  #owed = 0;
  #ended = false;
  #gone = false;
  #discarded: number | undefined;
  #waiting: Waiting | undefined;

  /** `consumed` gives bytes back to the sender; `overflow` is called when it goes on sending a body nobody wants. */
  constructor(consumed: (bytes: number) => void, overflow: () => void) {
    this.#consumed = consumed;
    this.#overflow = overflow;
  }

  /** Whether the whole body has arrived and been taken. */
  get finished(): boolean {
    return this.#ended && this.#chunks.length === 0;
  }

  /** Whether the sender has ended the body, taken or not. */
  get ended(): boolean {
    return this.#ended;
  }

  push(chunk: Buffer): void {
    if (this.#discarded !== undefined) {
      this.#discarded += chunk.length;
      if (this.#discarded > discardLimitBytes) this.#overflow();
      else this.#consumed(chunk.length);
      return;
    }
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  abort(): void {
    this.#gone = true;
    this.#chunks = [];
    this.#waiting?.reject(new CallerGone());
    this.#waiting = undefined;
  }

  /** The next chunk, or undefined at the end. One caller at a time. Rejects with `CallerGone`. */
  async next(): Promise<Buffer | undefined> {
    this.#giveBack();
    this.#mustGoOn();
    if (this.#chunks.length === 0 && !this.#ended) {
      await this.#more();
      this.#mustGoOn(); // it may have broken off in the turn in which something came: that is no end
    }
    const chunk = this.#chunks.shift();
    this.#owed = chunk?.length ?? 0;
    return chunk;
  }

  /** The whole body in memory. Rejects with `resource_exhausted` (413) above `limitBytes`, or with `CallerGone`. */
  async collect(limitBytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let total = 0;
    for (let chunk = await this.next(); chunk !== undefined; chunk = await this.next()) {
      total += chunk.length;
      if (total > limitBytes) {
        throw new EnvdError("resource_exhausted", `request body is longer than ${limitBytes} bytes`, {
          status: 413,
        });
      }
      parts.push(chunk);
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, total);
  }

  /** Whatever else arrives is read and dropped; whoever waits for it gets `CallerGone`. */
  discard(): void {
    if (this.#discarded !== undefined || this.#gone) return;
    this.#giveBack();
    this.#discarded = 0;
    this.#waiting?.reject(new CallerGone());
    this.#waiting = undefined;
    for (const chunk of this.#chunks.splice(0)) this.push(chunk);
  }

  #mustGoOn(): void {
    if (this.#gone || this.#discarded !== undefined) throw new CallerGone();
  }

  #giveBack(): void {
    const bytes = this.#owed;
    this.#owed = 0;
    if (bytes > 0 && !this.#gone) this.#consumed(bytes);
  }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
