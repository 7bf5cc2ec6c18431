// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Time. Wall time for what others signed or will read, monotonic time for durations. Both in milliseconds. */
export interface Clock {
  wallMs(): number;
  /** Never steps; stands still while the host sleeps: for waits and limits, not for what ends a right. */
  monotonicMs(): number;
  /** Calls back once after the delay; the returned function cancels. */
  after(delayMs: number, callback: () => void): () => void;
}

/** leases are counted on a clock that runs on while the host is suspended, and is one for all its processes. */
export interface BootClock extends Clock {
  /** Milliseconds since the host booted, its sleep included. */
  bootMs(): number;
}
