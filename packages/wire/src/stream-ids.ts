// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Stream ids are 32 bits wide. */
const idLimit = 2 ** 32;

/**
 * The ids of the streams that one side opens: odd for the dialling side, even from 2 for the accepting side. A link that
 * lives long enough comes round to the first id again and passes over those still in use.
 */
export class StreamIds {
  readonly #first: number;
  #next: number;

  constructor(dialled: boolean, next: number = dialled ? 1 : 2) {
    this.#first = dialled ? 1 : 2;
    this.#next = next;
  }

  /** A free id. At least one must be free: the number of streams has a far lower limit. */
  take(isTaken: (id: number) => boolean): number {
    let id = this.#next;
    while (isTaken(id)) id = this.#after(id);
    this.#next = this.#after(id);
    return id;
  }

  /** Whether the other side may open a stream with this id. */
  isTheirs(id: number): boolean {
    return id > 0 && id % 2 !== this.#first % 2;
  }

  #after(id: number): number {
    return id + 2 < idLimit ? id + 2 : this.#first;
  }
}
