// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "../host/system-clock.ts";

export interface Waiting {
  readonly limitMs: number;
  readonly lookEveryMs: number;
}

/** Looks until the condition holds; false when it did not within the limit. */
export async function becomes(condition: () => boolean, { limitMs, lookEveryMs }: Waiting): Promise<boolean> {
  const deadlineMs = systemClock.monotonicMs() + limitMs;
  while (!condition()) {
    if (systemClock.monotonicMs() >= deadlineMs) return false;
    await pause(lookEveryMs);
  }
  return true;
}
