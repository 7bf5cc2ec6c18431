// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** How many spares there may be. They hold user id ranges, which are the worker's capacity, and give them up when asked. */
export interface SpareBounds {
  /** Kept ready on an idle worker too. */
  readonly least: number;
  readonly most: number;
}

/**
 * How many spares to keep: as many as the most starts that came in one go, in this period or the one before, within
 * bounds. In one go are all starts between two moments at which the pool was full: so many would have been served from
 * it. A worker that is left alone is back at the least after two periods.
 */
export class SpareDemand {
  readonly #bounds: SpareBounds;
  #inOneGo = 0;
  #mostNow = 0;
  #mostBefore = 0;

  constructor(bounds: SpareBounds) {
    this.#bounds = bounds;
  }

  get wanted(): number {
    const { least, most } = this.#bounds;
    return Math.min(most, Math.max(least, this.#mostNow, this.#mostBefore));
  }

  /** Whether `wanted` may sink by itself. */
  get isRaised(): boolean {
    return this.wanted > this.#bounds.least;
  }

  noteStart(): void {
    this.#inOneGo += 1;
    this.#mostNow = Math.max(this.#mostNow, this.#inOneGo);
  }

  noteFull(): void {
    this.#inOneGo = 0;
  }

  /** A period has passed. */
  turn(): void {
    this.#mostBefore = this.#mostNow;
    this.#mostNow = 0;
  }
}
