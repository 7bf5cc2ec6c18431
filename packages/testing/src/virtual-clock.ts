// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { BootClock } from "@space/model";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Lets everything run that needs no time: promises, and writes that wait for the end of a turn. */
export function settle(turns = 24): Promise<void> {
  return new Promise((resolve) => {
    const turn = (left: number): void => {
      if (left === 0) resolve();
      else setImmediate(turn, left - 1); // no promise for each turn: the test runner follows every one
    };
    turn(turns);
  });
}

/** Time that moves only when a test moves it. Wall and monotonic time move together; `step` moves the wall alone. */
export class VirtualClock implements BootClock {
  readonly #timers = new Set<Timer>();
  #monotonicMs = 1000;
  #sleptMs = 0;
  #offsetMs: number;
  #order = 0;

  constructor(startMs = 1_800_000_000_000) {
    this.#offsetMs = startMs - this.#monotonicMs;
  }

  wallMs(): number {
    return this.#monotonicMs + this.#offsetMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  bootMs(): number {
    return this.#monotonicMs + this.#sleptMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that wait now. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Moves time on, firing each timer at its instant and letting its consequences run before the next. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms;
    await settle();
    for (;;) {
      const next = [...this.#timers]
        .filter(({ atMs }) => atMs <= endMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#monotonicMs = Math.max(this.#monotonicMs, next.atMs);
      next.callback();
      await settle();
    }
    this.#monotonicMs = endMs;
  }

  /** The host sleeps: its wall and its boot-time clock run on, timers and the monotonic clock do not. */
  sleep(ms: number): void {
    this.#sleptMs += ms;
    this.#offsetMs += ms;
  }

  /** The same time as a machine shows it whose wall clock is ahead by so much, or behind. */
  aheadBy(skewMs: number): BootClock {
    return {
      wallMs: () => this.wallMs() + skewMs,
      monotonicMs: () => this.monotonicMs(),
      bootMs: () => this.bootMs(),
      after: (delayMs, callback) => this.after(delayMs, callback),
    };
  }

  /** The wall clock is set, as an administrator or NTP does. */
  step(ms: number): void {
    this.#offsetMs += ms;
  }
}
