// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** Takes the stream of a snapshot apart by lengths. An end that comes too early is `snapshot/refused`. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Whether it goes on with these bytes, which stay in it. */
  async startsWith(bytes: Buffer): Promise<boolean> {
    while (this.#held.length < bytes.length) {
      const next = await this.#source.next();
      if (next.done === true) return false;
      this.#held = Buffer.concat([this.#held, next.value]);
    }
    return this.#held.subarray(0, bytes.length).equals(bytes);
  }

  async exactly(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = length; left > 0; ) {
      const part = await this.some(left);
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** The next bytes, at least one and at most so many. */
  async some(limit: number): Promise<Buffer> {
    if (!(await this.#fill())) throw new SpaceError("snapshot/refused", { problem: "cut short" });
    const part = this.#held.subarray(0, limit);
    this.#held = this.#held.subarray(part.length);
    return part;
  }

  async atEnd(): Promise<boolean> {
    return !(await this.#fill());
  }

  /** Everything that has not been taken. */
  async *rest(): AsyncGenerator<Uint8Array> {
    while (await this.#fill()) {
      const part = this.#held;
      this.#held = Buffer.alloc(0);
      yield part;
    }
  }

  /** Lets go of the source where the rest is of no use. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #fill(): Promise<boolean> {
    while (this.#held.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return false;
      this.#held = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length);
    }
    return true;
  }
}
