// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** A rate with its count and the upper end of its 95 % interval: 3/n where nothing was counted, else Wilson's. */
export interface Rate {
  readonly count: number;
  readonly of: number;
  readonly rate: number;
  readonly upper95: number;
}

export function rateOf(count: number, of: number): Rate {
  return { count, of, rate: of === 0 ? 0 : count / of, upper95: upper95(count, of) };
}

function upper95(count: number, of: number): number {
  if (of === 0) return 1;
  if (count === 0) return Math.min(1, 3 / of);
  const z = 1.6449; // one-sided
  const rate = count / of;
  const spread = z * Math.sqrt((rate * (1 - rate)) / of + (z * z) / (4 * of * of));
  return Math.min(1, (rate + (z * z) / (2 * of) + spread) / (1 + (z * z) / of));
}

/** What became of the callers' operations, by the words of section 10. */
export class Rates {
  operations = 0;
  servedAtOnce = 0;
  servedAfterRetry = 0;
  streams = 0;
  droppedStreams = 0;
  notRunning = 0;
  repairs = 0;
  refreshes = 0;
  continued = 0;
  probes = 0;
  readonly failures = new Map<string, number>();
  readonly apiFailures = new Map<string, number>();

  served(retries: number): void {
    if (retries === 0) this.servedAtOnce += 1;
    else this.servedAfterRetry += 1;
  }

  failed(how: string): void {
    this.failures.set(how, (this.failures.get(how) ?? 0) + 1);
  }

  apiFailed(code: string): void {
    this.apiFailures.set(code, (this.apiFailures.get(code) ?? 0) + 1);
  }
}
