// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

const knownLimit = 65_536;

/** What this process has written or verified, the longest ago forgotten first. Holds nothing secret. */
export class KnownNames {
  readonly #names = new Set<string>();
  readonly #limit: number;

  constructor(limit: number = knownLimit) {
    this.#limit = limit;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.delete(name);
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > this.#limit && oldest !== undefined) this.#names.delete(oldest);
  }
}
