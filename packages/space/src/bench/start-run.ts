// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { openBenchSubstrate, startGuest } from "./bench-guest.ts";
import { ensureTools, runFolder } from "./bench-tools.ts";
import { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import { withEnding } from "./ending.ts";
import { atLeast, atMost, type JudgedGoal, judge } from "./goals.ts";
import { type MachineFacts, machineFacts, proportionalBytes } from "./machine.ts";
import { QuietGate } from "./quiet-gate.ts";
import type { CreatedSandbox, SandboxClient } from "./sandbox-client.ts";
import { median, medianRatio, percentile, rounded } from "./statistics.ts";
import {
  bwrapTrue,
  type SustainedRounds,
  type SustainedStarts,
  summariseSustained,
  sustain,
} from "./sustained-starts.ts";

export interface Timing {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface StartReport {
  readonly bench: "start";
  readonly machine: MachineFacts;
  readonly gate: QuietGate["counts"];
  /** From the request to create to the result of the first command, `/bin/true`. */
  readonly createToFirstResult: { readonly one: Timing; readonly fourAtATime: Timing };
  /** The request to create alone. */
  readonly create: Timing;
  /** The substrate alone, making each guest when it is asked for. */
  readonly coldGuest: Timing;
  /** `bwrap` with the same namespaces and `true` inside: start to end. */
  readonly bwrap: Timing;
  readonly sustained: SustainedStarts;
  readonly idle: {
    readonly sandboxes: number;
    /** Proportional share of the guest's pid 1. */
    readonly guestPssBytes: number;
    /** What one more idle sandbox adds to all processes of SPACE together. */
    readonly addedPssBytes: number;
    /** A Node process that does nothing, in the same run. */
    readonly nodePssBytes: number;
  };
  readonly goals: readonly JudgedGoal[];
}

interface Plan {
  readonly rounds: number;
  readonly each: number;
  readonly sustainedRounds: number;
  /** Of executions in one round; of guests and of `bwrap` a third each. */
  readonly sustainedSeconds: number;
  readonly idle: number;
}

const plans: Readonly<Record<"whole" | "quick", Plan>> = {
  whole: { rounds: 8, each: 15, sustainedRounds: 5, sustainedSeconds: 12, idle: 50 },
  quick: { rounds: 3, each: 8, sustainedRounds: 3, sustainedSeconds: 4, idle: 20 },
};

/** Measures what a sandbox costs to start and to keep, beside plain `bwrap`. */
export function benchStart(quick: boolean, progress: (line: string) => void): Promise<StartReport> {
  const plan = plans[quick ? "quick" : "whole"];
  return withEnding(async (ending) => {
    await ensureTools([{ name: "bubblewrap", command: "bwrap" }]);
    const folder = runFolder(ending);
    const system = await BenchmarkedSystem.start(
      { folder, name: "system", workers: 2, checked: true },
      ending,
    );
    const cold = await openBenchSubstrate(folder, "cold", ending);
    ending.add(() => cold.close("stopAll"));
    await system.settled();
    const gate = new QuietGate();
    const starts = await sampleStarts(system, {
      plan,
      gate,
      coldStart: () =>
        timed(async () => {
          const { activationId } = await startGuest(cold);
          return () => cold.stop(activationId);
        }),
    });
    progress("single starts done");
    const idle = await measureIdle(system, plan.idle);
    progress("idle memory done");
    const sustained = await sustain(
      { rounds: plan.sustainedRounds, seconds: plan.sustainedSeconds },
      { system, substrate: cold, gate, oneExecution },
    );
    progress("sustained starts done");
    return {
      bench: "start",
      machine: machineFacts(),
      gate: gate.counts,
      ...timings(starts),
      sustained: summariseSustained(sustained),
      idle,
      goals: judgeStart(starts, sustained, idle),
    };
  });
}

/** Milliseconds, round by round. */
interface StartSamples {
  readonly whole: number[][];
  readonly create: number[][];
  readonly four: number[][];
  readonly cold: number[][];
  readonly bwrap: number[][];
}

interface Sampling {
  readonly plan: Plan;
  readonly gate: QuietGate;
  readonly coldStart: () => Promise<number>;
}

async function sampleStarts(
  system: BenchmarkedSystem,
  { plan, gate, coldStart }: Sampling,
): Promise<StartSamples> {
  const samples: StartSamples = { whole: [], create: [], four: [], cold: [], bwrap: [] };
  const clients = await Promise.all(Array.from({ length: 4 }, () => system.client()));
  const [client] = clients;
  if (client === undefined) throw new TypeError("four clients were opened");
  await oneExecution(client);
  for (let round = 0; round < plan.rounds; round++) {
    await gate.quiet();
    const singles = await repeat(plan.each, () => oneExecution(client));
    samples.create.push(singles.map(({ createMs }) => createMs));
    samples.whole.push(singles.map(({ wholeMs }) => wholeMs));
    await gate.quiet();
    samples.cold.push(await repeat(plan.each, coldStart));
    await gate.quiet();
    samples.bwrap.push(await repeat(plan.each, bwrapTrue));
    await gate.quiet();
    const fours = await Promise.all(clients.map((each) => repeat(plan.each, () => oneExecution(each))));
    samples.four.push(fours.flat().map(({ wholeMs }) => wholeMs));
  }
  for (const each of clients) each.close();
  return samples;
}

export async function oneExecution(client: SandboxClient): Promise<{ createMs: number; wholeMs: number }> {
  const beganMs = performance.now();
  const sandbox = await client.create();
  const createdMs = performance.now();
  await client.runTrue(sandbox);
  const wholeMs = performance.now() - beganMs;
  await client.kill(sandbox);
  return { createMs: createdMs - beganMs, wholeMs };
}

/** Times `work`; what it returns cleans up outside of the time. */
async function timed(work: () => Promise<() => Promise<unknown>>): Promise<number> {
  const beganMs = performance.now();
  const cleanUp = await work();
  const tookMs = performance.now() - beganMs;
  await cleanUp();
  return tookMs;
}

async function measureIdle(system: BenchmarkedSystem, count: number): Promise<StartReport["idle"]> {
  const client = await system.client();
  await system.settled();
  const before = sumPss(system);
  const sandboxes: CreatedSandbox[] = await repeat(count, () => client.create());
  await system.settled();
  const after = sumPss(system);
  const guests = system.processes().guest.flatMap((pid) => proportionalBytes(pid) ?? []);
  const nodePssBytes = await idleNode();
  for (const sandbox of sandboxes) await client.kill(sandbox);
  client.close();
  return {
    sandboxes: count,
    guestPssBytes: Math.round(median(guests)),
    addedPssBytes: Math.round((after - before) / count),
    nodePssBytes,
  };
}

function sumPss(system: BenchmarkedSystem): number {
  const pids = Object.values(system.processes()).flat();
  return pids.reduce((sum: number, pid: number) => sum + (proportionalBytes(pid) ?? 0), 0);
}

async function idleNode(): Promise<number> {
  const child = spawn(process.execPath, ["-e", "console.log(1); setInterval(() => 0, 1e6)"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    await new Promise((resolve) => child.stdout.once("data", resolve));
    return proportionalBytes(child.pid ?? 0) ?? 0;
  } finally {
    child.kill("SIGKILL");
  }
}

export async function repeat<T>(count: number, once: () => Promise<T>): Promise<T[]> {
  const values: T[] = [];
  for (let done = 0; done < count; done++) values.push(await once());
  return values;
}

function timings({ whole, create, four, cold, bwrap }: StartSamples) {
  return {
    createToFirstResult: { one: timing(whole), fourAtATime: timing(four) },
    create: timing(create),
    coldGuest: timing(cold),
    bwrap: timing(bwrap),
  };
}

export function timing(rounds: readonly number[][]): Timing {
  const values = rounds.flat();
  return { count: values.length, p50Ms: rounded(median(values)), p99Ms: rounded(percentile(values, 99)) };
}

function judgeStart(
  { whole, create, cold, bwrap }: StartSamples,
  sustained: SustainedRounds,
  idle: StartReport["idle"],
): readonly JudgedGoal[] {
  const over = (values: readonly number[][]): number | undefined =>
    medianRatio(values.map(median), bwrap.map(median));
  return [
    judge(atMost("G12", "a guest started cold / bwrap and true, p50", 0.5, 0.2), over(cold)),
    judge(atMost("G12'", "a sandbox created through the API / bwrap and true, p50", 0.5, 0.2), over(create)),
    judge(atMost("G12'", "create to the first command's result / bwrap and true, p50", 1, 0.5), over(whole)),
    judge(
      atLeast("G12", "guests started, answering and ended a second / bwrap starts a second", 2, 5),
      medianRatio(sustained.guests, sustained.bwrap),
    ),
    judge(
      atLeast("G12'", "executions created, used and killed a second / bwrap starts a second", 2, 5),
      medianRatio(sustained.executions, sustained.bwrap),
    ),
    judge(
      atMost("G15", "memory that one idle sandbox adds / an idle Node process", 0.25, 0.05),
      idle.addedPssBytes / idle.nodePssBytes,
    ),
  ];
}
