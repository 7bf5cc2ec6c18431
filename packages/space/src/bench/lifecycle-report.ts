// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { VariantFigures } from "./lifecycle-figures.ts";
import type { LifecycleReport } from "./lifecycle-run.ts";
import { goalTable, runText, table } from "./report.ts";
import { timingRow } from "./start-report.ts";

/** The report of `bench lifecycle` for a person. */
export function tellLifecycle(report: LifecycleReport): string {
  const { claims, sustained, missing } = report;
  return [
    runText(report),
    ...missing.map(({ name, reason }) => `${name} is not measured: ${reason}`),
    table(
      ["substrate", "holds", "operation", "n", "p50 ms", "p99 ms", "CPU s", "bwrap starts", "snapshot MB"],
      report.variants.flatMap(operationRows),
    ),
    table(
      ["from the pool", "n", "p50 ms", "p99 ms"],
      [
        timingRow("create to first result", claims.whole),
        timingRow("create", claims.create),
        timingRow("claim and first command, the substrate alone", claims.claimed),
        timingRow("the same without a pool", claims.cold),
        timingRow("bwrap and true", claims.bwrap),
      ],
    ),
    `${sustained.executionsPerSecond} executions a second created, used and killed over ${sustained.seconds} s (${sustained.ownCpuSecondsPerExecution} CPU seconds of SPACE's each, ${sustained.cpuSecondsPerExecution} of the machine's)`,
    `${sustained.guestsPerSecond} guests of the substrate alone a second; bwrap: ${sustained.bwrapPerSecond} starts a second`,
    "",
    goalTable(report.goals),
  ].join("\n");
}

function operationRows({ variant, megabytes, operations, snapshotBytes }: VariantFigures): string[][] {
  return operations.map(({ operation, count, p50Ms, p99Ms, cpuSeconds, perBwrap }) => [
    variant,
    megabytes === 0 ? "idle" : `${megabytes} MB`,
    operation,
    String(count),
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
    String(cpuSeconds),
    perBwrap === null ? "–" : String(perBwrap),
    operation === "pause" ? (snapshotBytes.p50 / 1_000_000).toFixed(2) : "",
  ]);
}
