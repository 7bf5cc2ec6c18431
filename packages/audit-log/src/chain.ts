// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest } from "@space/model";
import { lineDigest, noDigest, recordLine, type WaitingRecord } from "./audit-record.ts";

/** Where a log's chain stands. */
export interface ChainState {
  /** Number of the last record; 0 before the first. */
  readonly sequence: number;
  readonly head: Digest;
}

export const emptyChain: ChainState = { sequence: 0, head: noDigest };

/** Gives records their place, one after the other. */
export class Chain {
  #state: ChainState;

  constructor(state: ChainState) {
    this.#state = state;
  }

  get state(): ChainState {
    return this.#state;
  }

  /** Forgets what was linked since, because it was not written. */
  returnTo(state: ChainState): void {
    this.#state = state;
  }

  /** The record's line with its end. */
  link(waiting: WaitingRecord): string {
    const sequence = this.#state.sequence + 1;
    const line = recordLine(sequence, this.#state.head, waiting);
    this.#state = { sequence, head: lineDigest(line) };
    return `${line}\n`;
  }
}
