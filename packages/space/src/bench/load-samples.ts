// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Contender } from "./contender.ts";
import type { LoadGenerator } from "./load-generator.ts";
import { cpuUse } from "./machine.ts";
import type { QuietGate } from "./quiet-gate.ts";
import { UnsoundRun } from "./unsound.ts";
import type { LoadReport } from "./wrk-report.ts";

export interface LoadSample extends LoadReport {
  readonly contender: string;
  readonly connections: number;
  readonly round: number;
  /** Whether the machine did nothing else when it began. */
  readonly quiet: boolean;
  /** Microseconds of CPU for each request, by role of the process. */
  readonly cpuUs: Readonly<Record<string, number>>;
}

export interface LoadPlan {
  readonly contenders: readonly Contender[];
  readonly connections: readonly number[];
  /** Numbers of the rounds to take. */
  readonly rounds: readonly number[];
  readonly seconds: number;
}

export interface LoadPorts {
  readonly generator: LoadGenerator;
  readonly gate: QuietGate;
  /** Throws when a contender has ended. */
  readonly mustRun: () => void;
  readonly progress: (line: string) => void;
}

/**
 * In each round every contender has its turn at every number of connections, one right after the other, beginning with
 * another one in each round: what happens to the machine happens to all of them alike.
 */
export async function sampleInRounds(plan: LoadPlan, ports: LoadPorts): Promise<readonly LoadSample[]> {
  const { contenders, connections: counts, rounds, seconds } = plan;
  const samples: LoadSample[] = [];
  for (const round of rounds) {
    for (const connections of counts) {
      for (const contender of rotated(contenders, round)) {
        samples.push(await sampleOne(contender, { connections, round, seconds }, ports));
      }
    }
    ports.progress(`round ${round} done`);
  }
  return samples;
}

export function rotated<T>(list: readonly T[], by: number): readonly T[] {
  const at = by % Math.max(1, list.length);
  return [...list.slice(at), ...list.slice(0, at)];
}

async function sampleOne(
  contender: Contender,
  { connections, round, seconds }: { connections: number; round: number; seconds: number },
  { generator, gate, mustRun }: LoadPorts,
): Promise<LoadSample> {
  const target = await contender.target(seconds);
  const quiet = await gate.quiet();
  const before = cpuOf(contender);
  const report = await generator.run(target, { connections, seconds });
  const after = cpuOf(contender);
  mustRun();
  if (report.requests === 0) throw new UnsoundRun(`${contender.name} answered nothing`);
  const cpuUs = Object.fromEntries(
    Object.keys(after).map((role) => [
      role,
      (((after[role] ?? 0) - (before[role] ?? 0)) * 1e6) / report.requests,
    ]),
  );
  return { contender: contender.name, connections, round, quiet, ...report, cpuUs };
}

function cpuOf({ processes }: Contender): Record<string, number> {
  return Object.fromEntries(
    Object.entries(processes).map(([role, pids]) => [
      role,
      pids.reduce((sum, pid) => sum + cpuUse(pid).own, 0),
    ]),
  );
}

/** The samples of one contender at one number of connections. */
export function pick(
  samples: readonly LoadSample[],
  contender: string,
  connections: number,
): readonly LoadSample[] {
  return samples.filter((sample) => sample.contender === contender && sample.connections === connections);
}

/** One value of each round; a round without the sample has a gap, so that rounds stay beside each other. */
export function byRound(
  samples: readonly LoadSample[],
  value: (sample: LoadSample) => number | undefined,
): readonly (number | undefined)[] {
  const values: (number | undefined)[] = [];
  for (const sample of samples) values[sample.round] = value(sample);
  return Array.from(values);
}
