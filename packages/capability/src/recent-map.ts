// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** A map that holds at most `limit` entries and lets go of the one unused for longest. */
export class RecentMap<V> {
  readonly #limit: number;
  /** In order of use: a `Map` keeps the order of insertion. */
  readonly #entries = new Map<string, V>();
  #newest: string | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined || key === this.#newest) return value;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#newest = key;
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#newest = key;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limit) break;
      this.#entries.delete(oldest);
    }
  }

  clear(): void {
    this.#newest = undefined;
    this.#entries.clear();
  }
}
