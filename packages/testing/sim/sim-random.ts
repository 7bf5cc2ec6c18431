// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Random } from "@space/model";

/** Chance that is the same for the same seed: four 32-bit words of state (sfc32). Draws of its children are independent of its own. */
export class SimRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: string) {
    let hash = 0x811c9dc5;
    for (let at = 0; at < seed.length; at += 1) hash = Math.imul(hash ^ seed.charCodeAt(at), 0x01000193);
    this.#a = hash >>> 0;
    this.#b = Math.imul(hash, 0x9e3779b1) >>> 0;
    this.#c = Math.imul(hash ^ 0x85ebca6b, 0xc2b2ae35) >>> 0;
    for (let round = 0; round < 15; round += 1) this.word();
  }

  /** 32 random bits. */
  word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 4) {
      const word = this.word();
      bytes[at] = word;
      bytes[at + 1] = word >>> 8;
      bytes[at + 2] = word >>> 16;
      bytes[at + 3] = word >>> 24;
    }
    return bytes;
  }

  /** 0 (included) to 1 (excluded). */
  fraction(): number {
    return this.word() / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  between(low: number, high: number): number {
    return low + this.fraction() * (high - low);
  }

  /** A whole number below the limit. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new TypeError("nothing to pick from");
    return item;
  }

  /** Another source, for somebody else: what one draws does not move the other. */
  child(name: string): SimRandom {
    return new SimRandom(`${this.word()} ${name}`);
  }
}
