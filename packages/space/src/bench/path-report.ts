// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { byRound, type LoadSample, pick } from "./load-samples.ts";
import type { PathResult } from "./path-bench.ts";
import { goalTable, runText, table } from "./report.ts";
import { median, medianRatio } from "./statistics.ts";

/** The samples of one contender at one number of connections, in one line. */
export interface LoadSummary {
  readonly contender: string;
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly bestRequestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly errors: number;
  readonly requests: number;
  readonly cpuUs: Readonly<Record<string, number>>;
}

export function summarise(samples: readonly LoadSample[]): readonly LoadSummary[] {
  const names = [...new Set(samples.map(({ contender }) => contender))];
  const counts = [...new Set(samples.map(({ connections }) => connections))];
  return counts.flatMap((connections) =>
    names.flatMap((contender) => {
      const own = pick(samples, contender, connections);
      return own.length === 0 ? [] : [summaryOf(contender, connections, own)];
    }),
  );
}

function summaryOf(contender: string, connections: number, own: readonly LoadSample[]): LoadSummary {
  const middle = (value: (sample: LoadSample) => number): number => Math.round(median(own.map(value)));
  const roles = Object.keys(own[0]?.cpuUs ?? {});
  return {
    contender,
    connections,
    requestsPerSecond: middle(({ requestsPerSecond }) => requestsPerSecond),
    bestRequestsPerSecond: Math.round(Math.max(...own.map(({ requestsPerSecond }) => requestsPerSecond))),
    p50Us: middle(({ p50Us }) => p50Us),
    p99Us: middle(({ p99Us }) => p99Us),
    errors: own.reduce((sum, { errors }) => sum + errors, 0),
    requests: own.reduce((sum, { requests }) => sum + requests, 0),
    cpuUs: Object.fromEntries(roles.map((role) => [role, middle(({ cpuUs }) => cpuUs[role] ?? 0)])),
  };
}

/** What verification costs each request, from the whole path with and without it. */
export interface PathDifference {
  readonly connections: number;
  readonly workerCpuUs: number;
  readonly p50Us: number;
  readonly requestsPerSecondRatio: number;
}

export function differences(samples: readonly LoadSample[]): readonly PathDifference[] {
  const counts = [...new Set(samples.map(({ connections }) => connections))];
  return counts.map((connections) => {
    const checked = pick(samples, "path", connections);
    const unchecked = pick(samples, "path-unchecked", connections);
    const difference = (value: (sample: LoadSample) => number): number => {
      const [a, b] = [byRound(checked, value), byRound(unchecked, value)];
      return Math.round(median(a.flatMap((mine = 0, round) => [mine - (b[round] ?? 0)])) * 10) / 10;
    };
    const rate = ({ requestsPerSecond }: LoadSample): number => requestsPerSecond;
    return {
      connections,
      workerCpuUs: difference(({ cpuUs }) => cpuUs["worker"] ?? 0),
      p50Us: difference(({ p50Us }) => p50Us),
      requestsPerSecondRatio: medianRatio(byRound(checked, rate), byRound(unchecked, rate)) ?? Number.NaN,
    };
  });
}

/** The run for a person. */
export function tellPath(result: PathResult): string {
  const { contenders, samples, execs, verification, proof, goals } = result;
  const rows = summarise(samples).map((line) => [
    line.contender,
    `${line.connections}`,
    `${line.requestsPerSecond} (${line.bestRequestsPerSecond})`,
    `${line.p50Us}`,
    `${line.p99Us}`,
    `${line.errors}`,
    Object.entries(line.cpuUs)
      .map(([role, us]) => `${role} ${us}`)
      .join(", "),
  ]);
  const heads = [
    "contender",
    "connections",
    "requests/s (best)",
    "p50 us",
    "p99 us",
    "errors",
    "CPU us/request",
  ];
  const cost = differences(samples).map(
    ({ connections, workerCpuUs, p50Us }) =>
      `  ${connections} connections: worker's CPU ${workerCpuUs} us/request, p50 ${p50Us} us (differences of noisy figures)`,
  );
  const exec = (of: "pathMs" | "directMs"): string =>
    median(execs.map((sample) => median(sample[of]))).toFixed(2);
  return `${runText(result)}
One authorised read of a file of 1 KB
${contenders.map(({ name, what }) => `  ${name.padEnd(26)}${what}`).join("\n")}

${table(heads, rows)}

What verification costs
  the check alone: ${verification.knownUs.toFixed(1)} us when the token's bytes were verified before, ${verification.freshUs.toFixed(1)} us for a new token
${cost.join("\n")}
  proof: an altered capability was ${proof.checkedServedAltered ? "served" : "refused"} by the checked worker and ${proof.uncheckedServedAltered ? "served" : "refused"} by the unchecked one

/bin/true: ${exec("pathMs")} ms through the whole path, ${exec("directMs")} ms by the guest's socket (medians)

${goalTable(goals)}`;
}
