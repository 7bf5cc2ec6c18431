// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type FaultKind, faultKinds } from "./faults.ts";
import type { Violation } from "./statements.ts";
import type { WorldReport } from "./world.ts";

/** What one process found in its worlds; a JSON document on its way to whoever started it. */
export interface ShardReport {
  worlds: number;
  executions: number;
  /** Of those, with real Ed25519. */
  realExecutions: number;
  steps: number;
  virtualMs: number;
  cpuMs: number;
  readonly faults: Record<FaultKind, number>;
  readonly counts: Record<CountName, number>;
  readonly failures: Record<string, number>;
  /** The first world with such an answer: what to look into where there are few. */
  readonly failedIn: Record<string, string>;
  readonly apiFailures: Record<string, number>;
  /** By the mean time between two faults of a world, or "never". */
  readonly storms: Record<string, StormCounts>;
  readonly violations: (Violation & { readonly world: string })[];
}

export interface StormCounts {
  executions: number;
  /** Of a sandbox that ran. */
  operations: number;
  errors: number;
  streams: number;
  droppedStreams: number;
}

const countNames = [
  "operations",
  "servedAtOnce",
  "servedAfterRetry",
  "notRunning",
  "streams",
  "droppedStreams",
  "repairs",
  "refreshes",
  "continued",
  "probes",
] as const;
export type CountName = (typeof countNames)[number];

export function emptyShard(): ShardReport {
  const zeros = <Name extends string>(names: readonly Name[]): Record<Name, number> =>
    Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>; // cast: every name is there
  return {
    worlds: 0,
    executions: 0,
    realExecutions: 0,
    steps: 0,
    virtualMs: 0,
    cpuMs: 0,
    faults: zeros(faultKinds),
    counts: zeros(countNames),
    failures: {},
    failedIn: {},
    apiFailures: {},
    storms: {},
    violations: [],
  };
}

function addStorm(storms: ShardReport["storms"], name: string, more: StormCounts): void {
  const known = storms[name];
  if (known === undefined) storms[name] = { ...more };
  else
    for (const what of ["executions", "operations", "errors", "streams", "droppedStreams"] as const)
      known[what] += more[what];
}

function stormOf({ executions, rates }: WorldReport): StormCounts {
  const { operations, notRunning, streams, droppedStreams } = rates;
  const errors = [...rates.failures.values()].reduce((sum, count) => sum + count, 0);
  return { executions, operations: operations - notRunning, errors, streams, droppedStreams };
}

/** Adds what one world came to. */
export function addShard(report: ShardReport, world: string, realKeys: boolean, result: WorldReport): void {
  report.worlds += 1;
  report.executions += result.executions;
  if (realKeys) report.realExecutions += result.executions;
  report.steps += result.steps;
  report.virtualMs += result.virtualMs;
  for (const kind of faultKinds) report.faults[kind] += result.faults.of(kind);
  for (const name of countNames) report.counts[name] += result.rates[name];
  for (const [how, count] of result.rates.failures) {
    report.failures[how] = (report.failures[how] ?? 0) + count;
    report.failedIn[how] ??= world;
  }
  for (const [code, count] of result.rates.apiFailures)
    report.apiFailures[code] = (report.apiFailures[code] ?? 0) + count;
  addStorm(
    report.storms,
    Number.isFinite(result.struckEveryMs) ? String(result.struckEveryMs) : "never",
    stormOf(result),
  );
  for (const violation of result.violations) report.violations.push({ ...violation, world });
}

/** Adds up what several processes found. */
export function mergeShards(reports: readonly ShardReport[]): ShardReport {
  const sum = emptyShard();
  for (const report of reports) {
    for (const name of ["worlds", "executions", "realExecutions", "steps", "virtualMs", "cpuMs"] as const)
      sum[name] += report[name];
    for (const kind of faultKinds) sum.faults[kind] += report.faults[kind];
    for (const name of countNames) sum.counts[name] += report.counts[name];
    for (const [how, count] of Object.entries(report.failures))
      sum.failures[how] = (sum.failures[how] ?? 0) + count;
    for (const [how, world] of Object.entries(report.failedIn)) sum.failedIn[how] ??= world;
    for (const [code, count] of Object.entries(report.apiFailures))
      sum.apiFailures[code] = (sum.apiFailures[code] ?? 0) + count;
    for (const [name, counts] of Object.entries(report.storms)) addStorm(sum.storms, name, counts);
    sum.violations.push(...report.violations);
  }
  return sum;
}
