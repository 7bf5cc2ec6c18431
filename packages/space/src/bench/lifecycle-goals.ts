// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ClaimSamples } from "./claim-samples.ts";
import { atLeast, atMost, type JudgedGoal, judge } from "./goals.ts";
import type { VariantFigures } from "./lifecycle-figures.ts";
import type { LifecycleOperation } from "./lifecycle-samples.ts";
import { median, medianRatio } from "./statistics.ts";
import type { SustainedRounds } from "./sustained-starts.ts";

/** Milliseconds at p50, with the agent alone and with 64 MB of random data. */
const limits: readonly {
  readonly variant: VariantFigures["variant"];
  readonly megabytes: number;
  readonly operation: LifecycleOperation;
  readonly ms: number;
}[] = [
  { variant: "namespace-criu", megabytes: 0, operation: "pause", ms: 200 },
  { variant: "namespace-criu", megabytes: 0, operation: "resumeOther", ms: 200 },
  { variant: "namespace-criu", megabytes: 64, operation: "pause", ms: 600 },
  { variant: "namespace-criu", megabytes: 64, operation: "resumeOther", ms: 800 },
  { variant: "gvisor", megabytes: 0, operation: "pause", ms: 250 },
  { variant: "gvisor", megabytes: 0, operation: "resumeOther", ms: 600 },
  { variant: "gvisor", megabytes: 64, operation: "pause", ms: 500 },
  { variant: "gvisor", megabytes: 64, operation: "resumeOther", ms: 1000 },
];

/** The times that the lifecycle was to reach on two idle cores, from its own measurements: rows `L`; the stretch is half of each. */
export function judgeLifecycle(figures: readonly VariantFigures[]): readonly JudgedGoal[] {
  return limits.map(({ variant, megabytes, operation, ms }) => {
    const of = figures.find((each) => each.variant === variant && each.megabytes === megabytes);
    const what = `${variant}, ${megabytes === 0 ? "idle" : `${megabytes} MB`}: ${operation}, p50 ms`;
    return judge(
      atMost("L", what, ms, ms / 2),
      of?.operations.find((each) => each.operation === operation)?.p50Ms,
    );
  });
}

export function judgeClaims(
  { whole, claimed, cold, bwrap }: ClaimSamples,
  { executions, bwrap: bwrapRates }: SustainedRounds,
): readonly JudgedGoal[] {
  const ratio = (over: readonly number[][], under: readonly number[][]): number | undefined =>
    medianRatio(over.map(median), under.map(median));
  return [
    judge(
      atMost("L", "create from the pool to the first command's result, p50 ms", 60, 30),
      median(whole.flat()),
    ),
    judge(
      atMost("L", "claim to the first command's end, the substrate alone, p50 ms", 60, 30),
      median(claimed.flat()),
    ),
    judge(atLeast("L", "executions created, used and killed a second", 12, 24), median(executions)),
    judge(
      atLeast("G12'", "executions created, used and killed a second / bwrap starts a second", 2, 5),
      medianRatio(executions, bwrapRates),
    ),
    judge(
      atMost("G13'", "claim and first command / the same without a pool, p50", 0.5, 0.25),
      ratio(claimed, cold),
    ),
    judge(
      atMost("G12'", "create to the first command's result / bwrap and true, p50", 1, 0.5),
      ratio(whole, bwrap),
    ),
  ];
}
