// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";

/** Time as it passes for a guest that may be frozen: it stands still from `stop` to `go`. */
export class RunningTime {
  readonly #clock: Clock;
  #stoppedAtMs: number | undefined;
  #missedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return (this.#stoppedAtMs ?? this.#clock.monotonicMs()) - this.#missedMs;
  }

  stop(): void {
    this.#stoppedAtMs ??= this.#clock.monotonicMs();
  }

  go(): void {
    if (this.#stoppedAtMs === undefined) return;
    this.#missedMs += this.#clock.monotonicMs() - this.#stoppedAtMs;
    this.#stoppedAtMs = undefined;
  }
}
