// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";

/** Choices that are the same for the same seed: SHA-256 of seed and counter. */
export class Dice {
  readonly #seed: string;
  #thrown = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** A whole number from 0 to below `sides`. */
  below(sides: number): number {
    const digest = createHash("sha256")
      .update(`${this.#seed} ${this.#thrown++}`)
      .digest();
    return digest.readUIntBE(0, 6) % sides;
  }

  /** A whole number of these, both ends among them. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** One of the names, each as likely as its weight. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const names = Object.keys(weights) as T[]; // cast: the record's own keys
    const total = names.reduce((sum, name) => sum + weights[name], 0);
    let left = this.below(total);
    for (const name of names) {
      left -= weights[name];
      if (left < 0) return name;
    }
    throw new RangeError("no weights");
  }

  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): readonly T[] {
    const rest = [...items];
    return items.flatMap(() => rest.splice(this.below(rest.length), 1));
  }
}
