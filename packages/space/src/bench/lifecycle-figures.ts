// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type LifecycleOperation,
  type LifecycleSample,
  type LifecycleSamples,
  lifecycleOperations,
} from "./lifecycle-samples.ts";
import type { LifecycleVariant } from "./lifecycle-variants.ts";
import { type Timing, timing } from "./start-run.ts";
import { median, medianRatio, percentile, rounded } from "./statistics.ts";

/** One operation, from the request to its answer. */
export interface OperationFigures extends Timing {
  readonly operation: LifecycleOperation;
  /** Of SPACE's own processes, on average. */
  readonly cpuSeconds: number;
  /** In starts of `bwrap` and `true` of the same rounds. */
  readonly perBwrap: number | null;
}

export interface VariantFigures {
  readonly variant: LifecycleVariant["name"];
  /** What a process of the sandbox holds of random data; 0: the agent alone. */
  readonly megabytes: number;
  readonly operations: readonly OperationFigures[];
  /** What a pause writes, files and memory together, before sealing. */
  readonly snapshotBytes: { readonly p50: number; readonly p99: number };
}

/** What the samples of one substrate with one load come to. */
export function figuresOf(
  of: Pick<VariantFigures, "variant" | "megabytes">,
  { operations, snapshotBytes }: LifecycleSamples,
): VariantFigures {
  return {
    ...of,
    operations: lifecycleOperations.map((operation) => operationFigures(operation, operations[operation])),
    snapshotBytes: {
      p50: Math.round(median(snapshotBytes)),
      p99: Math.round(percentile(snapshotBytes, 99)),
    },
  };
}

function operationFigures(
  operation: LifecycleOperation,
  samples: readonly LifecycleSample[],
): OperationFigures {
  const ms = samples.map((sample) => sample.ms);
  const perBwrap = medianRatio(
    ms,
    samples.map(({ bwrapMs }) => bwrapMs),
  );
  const cpuSeconds = samples.reduce((sum, sample) => sum + sample.cpuSeconds, 0) / samples.length;
  return {
    operation,
    ...timing([ms]),
    cpuSeconds: rounded(cpuSeconds),
    perBwrap: perBwrap === undefined ? null : rounded(perBwrap),
  };
}
