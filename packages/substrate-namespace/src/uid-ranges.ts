// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** User ids of one guest on the host: guest uid n is host uid base + n. */
export const uidsPerGuest = 65_536;

/** Lends disjoint ranges of host user ids, so that no two guests on this host share an owner. */
export class UidRanges {
  readonly #base: number;
  readonly #count: number;
  readonly #taken = new Set<number>();
  #next = 0;

  /** `base` is the first uid of the first range, a multiple of nothing in particular; nothing else on the host uses them. */
  constructor(base: number, count: number) {
    if (base < uidsPerGuest || base + count * uidsPerGuest > 0xffff_0000) {
      throw new SpaceError("host/unfit", {
        problem: "the range of user ids does not fit",
        remedy: "choose a base from 65536 and fewer sandboxes per worker",
      });
    }
    this.#base = base;
    this.#count = count;
  }

  /** Takes a free range, the longest unused first. Throws `host/unfit` when all are lent. */
  take(): number {
    for (let tried = 0; tried < this.#count; tried += 1) {
      const slot = (this.#next + tried) % this.#count;
      if (this.#taken.has(slot)) continue;
      this.#taken.add(slot);
      this.#next = slot + 1;
      return this.#base + slot * uidsPerGuest;
    }
    throw new SpaceError("host/unfit", {
      problem: "every range of user ids is in use",
      remedy: "stop sandboxes or configure more ranges",
    });
  }

  /** True when every range is lent. */
  get exhausted(): boolean {
    return this.#taken.size >= this.#count;
  }

  /** Marks a range as lent that an execution of before a restart holds. */
  claim(base: number): void {
    this.#taken.add((base - this.#base) / uidsPerGuest);
  }

  give(base: number): void {
    this.#taken.delete((base - this.#base) / uidsPerGuest);
  }
}
