// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { BootClock } from "@space/model";
import type { EventLoop, Incarnation } from "./event-loop.ts";

/** How far one machine's clocks are from true time. */
export interface ClockError {
  /** Wall time less true time. */
  readonly skewMs: number;
  /** How much faster than true time it runs: 0.01 is one percent. */
  readonly drift: number;
}

/** What a world's true time is called in wall time. */
export const epochMs = 1_800_000_000_000;

/** One process's view of its machine's clocks. What it asked to be called back for dies with it. */
export class SimClock implements BootClock {
  readonly #loop: EventLoop;
  readonly #owner: Incarnation;
  readonly #error: ClockError;

  constructor(loop: EventLoop, owner: Incarnation, error: ClockError) {
    this.#loop = loop;
    this.#owner = owner;
    this.#error = error;
  }

  wallMs(): number {
    return Math.floor(epochMs + this.#loop.nowMs + this.#error.skewMs);
  }

  monotonicMs(): number {
    return this.#loop.nowMs * (1 + this.#error.drift);
  }

  /** Its hosts never sleep. */
  bootMs(): number {
    return this.monotonicMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#loop.after(delayMs / (1 + this.#error.drift), this.#owner, callback);
  }
}
