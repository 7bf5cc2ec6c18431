// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BootClock } from "@space/model";

/** For this package's tests: time moves only by `advance`, which fires what becomes due, in order. */
export class HandClock implements BootClock {
  nowMs = 1000;
  wallAheadMs = 1_000_000;
  readonly #timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();

  wallMs(): number {
    return this.nowMs + this.wallAheadMs;
  }

  monotonicMs(): number {
    return this.nowMs;
  }

  bootMs(): number {
    return this.nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.nowMs + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get waiting(): number {
    return this.#timers.size;
  }

  advance(byMs: number): void {
    const untilMs = this.nowMs + byMs;
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.callback();
    }
    this.nowMs = untilMs;
  }
}

test("the tests' clock fires what is due, in order, and nothing that was cancelled", () => {
  const clock = new HandClock();
  const fired: number[] = [];
  clock.after(20, () => fired.push(clock.nowMs));
  clock.after(10, () => fired.push(clock.nowMs));
  clock.after(15, () => fired.push(0))();
  clock.after(31, () => fired.push(0));
  clock.advance(30);
  assert.deepEqual([fired, clock.nowMs, clock.waiting], [[1010, 1020], 1030, 1]);
});
