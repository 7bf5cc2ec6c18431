// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { CapabilityCheck, recordOf } from "./capability-check.ts";
import type { CapabilityKit } from "./contenders/capability-kit.ts";
import { UnsoundRun } from "./unsound.ts";

const repetitions = 5;
const tokenCount = 1_000;
const timesEach = 20;

export interface VerificationCost {
  /** Microseconds of one whole check of a token whose bytes were verified before. */
  readonly knownUs: number;
  /** And of one that was never seen. */
  readonly freshUs: number;
}

/** The check alone, in this process, without any hop around it. The best of several repetitions. */
export function measureVerification(kit: CapabilityKit): VerificationCost {
  const record = recordOf(kit.facts);
  let [knownUs, freshUs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    const tokens = kit.issue(tokenCount);
    const check = new CapabilityCheck(kit.facts, () => record);
    freshUs = Math.min(freshUs, microsecondsEach(tokens, check));
    const again = Array.from({ length: timesEach }, () => tokens).flat();
    knownUs = Math.min(knownUs, microsecondsEach(again, check));
  }
  return { knownUs, freshUs };
}

function microsecondsEach(tokens: readonly string[], check: CapabilityCheck): number {
  const beganMs = performance.now();
  for (const token of tokens) if (!check.admits(token)) throw new UnsoundRun("a good capability was refused");
  return ((performance.now() - beganMs) * 1000) / tokens.length;
}
