// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Bytes that may be held at once; who wants more waits its turn. What is larger than the whole budget goes alone. */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #limitCount: number;
  #bytes = 0;
  #count = 0;

  constructor(limitBytes: number, limitCount: number) {
    this.#limitBytes = limitBytes;
    this.#limitCount = limitCount;
  }

  fits(bytes: number): boolean {
    if (this.#count === 0) return true;
    return this.#count < this.#limitCount && this.#bytes + bytes <= this.#limitBytes;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
    this.#count += 1;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#count -= 1;
  }
}
