// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Rate, rateOf } from "./rates.ts";
import type { ShardReport } from "./shard-report.ts";

export interface StormRates {
  /** On the mean; null: nothing is struck, and the network is as it is. */
  readonly secondsBetweenFaults: number | null;
  readonly executions: number;
  readonly errors: Rate;
  readonly droppedConnections: Rate;
}

/** What a whole run says. Rates by the words of section 10 of the identity protocol. */
export interface RunReport {
  readonly seed: string;
  readonly shards: number;
  readonly asked: number;
  readonly worlds: number;
  readonly executions: number;
  /** With real Ed25519 instead of the stand-in. */
  readonly realSignatures: Rate;
  readonly violations: number;
  readonly wrongDeliveries: Rate;
  readonly errors: Rate;
  readonly repairs: Rate;
  readonly droppedConnections: Rate;
  /** The same rates, apart by how often a world is struck. */
  readonly byStorm: readonly StormRates[];
  readonly faultsLanded: ShardReport["faults"];
  readonly answers: ShardReport["failures"];
  readonly answersMetIn: ShardReport["failedIn"];
  readonly apiFailures: ShardReport["apiFailures"];
  readonly counts: ShardReport["counts"];
  readonly seconds: number;
  readonly cpuMsPerExecution: number;
  readonly virtualHours: number;
  readonly found: ShardReport["violations"];
}

export interface RunFacts {
  readonly seed: string;
  readonly shards: number;
  readonly seconds: number;
  /** Executions that were asked for. */
  readonly asked: number;
}

export function runReport({ seed, shards, seconds, asked }: RunFacts, sum: ShardReport): RunReport {
  const { counts, violations, executions } = sum;
  const errors = Object.values(sum.failures).reduce((total, count) => total + count, 0);
  const wrong = violations.filter(({ statement }) => statement.startsWith("1:")).length;
  return {
    seed,
    shards,
    asked,
    worlds: sum.worlds,
    executions,
    realSignatures: rateOf(sum.realExecutions, executions),
    violations: violations.length,
    wrongDeliveries: rateOf(wrong, counts.operations),
    errors: rateOf(errors, counts.operations - counts.notRunning),
    repairs: rateOf(counts.repairs, counts.operations),
    droppedConnections: rateOf(counts.droppedStreams, counts.streams),
    byStorm: Object.entries(sum.storms).map(([everyMs, storm]) => ({
      secondsBetweenFaults: everyMs === "never" ? null : Number(everyMs) / 1000,
      executions: storm.executions,
      errors: rateOf(storm.errors, storm.operations),
      droppedConnections: rateOf(storm.droppedStreams, storm.streams),
    })),
    faultsLanded: sum.faults,
    answers: sum.failures,
    answersMetIn: sum.failedIn,
    apiFailures: sum.apiFailures,
    counts,
    seconds,
    cpuMsPerExecution: sum.cpuMs / Math.max(1, executions),
    virtualHours: sum.virtualMs / 3_600_000,
    found: violations,
  };
}

/** For people. */
export function tell(report: RunReport): string {
  const lines = [
    `${report.executions} executions in ${report.worlds} worlds (seed ${report.seed}), ${report.virtualHours.toFixed(1)} hours of virtual time in ${report.seconds.toFixed(1)} s on ${report.shards} processes, ${report.cpuMsPerExecution.toFixed(2)} ms of CPU each`,
    `real Ed25519 in ${percent(report.realSignatures.rate)} of the executions`,
    "",
    rateLine("wrong deliveries", report.wrongDeliveries),
    rateLine("errors", report.errors),
    rateLine("repairs", report.repairs),
    rateLine("dropped connections", report.droppedConnections),
    "",
    "by how often a world is struck:",
    ...report.byStorm.map(
      ({ secondsBetweenFaults, executions, errors, droppedConnections }) =>
        `  ${secondsBetweenFaults === null ? "never" : `every ${secondsBetweenFaults} s`}`.padEnd(14) +
        `${executions} executions, errors ${percent(errors.rate)}, dropped connections ${percent(droppedConnections.rate)}`,
    ),
    "",
    "faults that landed:",
    ...Object.entries(report.faultsLanded).map(([kind, count]) => `  ${kind.padEnd(24)}${count}`),
    "",
    `violations: ${report.violations}`,
    ...report.found.map(
      ({ world, statement, problem, step, executions }) =>
        `  ${statement}, in world ${world} after ${executions} executions, step ${step}: ${problem}\n    again: ./space sim --world ${world} --executions ${report.asked} --trace`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function rateLine(name: string, { count, of, rate, upper95 }: Rate): string {
  return `${name.padEnd(22)}${count} of ${of}: ${percent(rate)}, at most ${percent(upper95)} (95 %)`;
}

function percent(rate: number): string {
  return `${(100 * rate).toPrecision(3)} %`;
}
