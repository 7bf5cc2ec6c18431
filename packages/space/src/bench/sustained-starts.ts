// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import type { NamespaceSubstrate } from "@space/substrate-namespace";
import { connectTo, startGuest } from "./bench-guest.ts";
import type { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import { busySeconds } from "./machine.ts";
import type { QuietGate } from "./quiet-gate.ts";
import type { SandboxClient } from "./sandbox-client.ts";
import { median, rounded } from "./statistics.ts";

/** As many at once, of each of the three. */
const callers = 4;

/** What was done a second, round by round: one after the other in each round. */
export interface SustainedRounds {
  readonly seconds: number;
  readonly executions: readonly number[];
  readonly guests: readonly number[];
  readonly bwrap: readonly number[];
  /** Of all processes of the machine, for each that was done. */
  readonly cpuSeconds: { readonly executions: readonly number[]; readonly guests: readonly number[] };
  /** Of SPACE's own processes, for each execution. */
  readonly ownCpuSeconds: readonly number[];
}

export interface SustainedStarts {
  readonly rounds: number;
  /** Of executions, in all rounds together. */
  readonly seconds: number;
  /** Through the API: created, used once and killed. */
  readonly executionsPerSecond: number;
  /** Of all processes of the machine, this load and whatever else runs there included. */
  readonly cpuSecondsPerExecution: number;
  /** Of SPACE's own processes alone, guests included; what the kernel does for them later is not. */
  readonly ownCpuSecondsPerExecution: number;
  /** The substrate alone: started, answering and ended, with nothing left of it. */
  readonly guestsPerSecond: number;
  readonly cpuSecondsPerGuest: number;
  readonly bwrapPerSecond: number;
}

export interface SustainPlan {
  readonly rounds: number;
  readonly seconds: number;
}

export interface SustainPorts {
  readonly system: BenchmarkedSystem;
  readonly substrate: NamespaceSubstrate;
  readonly gate: QuietGate;
  readonly oneExecution: (client: SandboxClient) => Promise<unknown>;
}

/** Executions through the API, guests of the substrate alone and `bwrap`, four callers at a time each, in turns. */
export async function sustain(plan: SustainPlan, ports: SustainPorts): Promise<SustainedRounds> {
  const { system, substrate, gate, oneExecution } = ports;
  const clients = await Promise.all(Array.from({ length: callers }, () => system.client()));
  const executions: Rate[] = [];
  const guests: Rate[] = [];
  const bwrap: Rate[] = [];
  const ownCpuSeconds: number[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    await gate.quiet();
    const before = system.cpuSeconds();
    const rate = await rateOf(plan.seconds, (caller) => oneExecution(at(clients, caller)));
    executions.push(rate);
    ownCpuSeconds.push((system.cpuSeconds() - before) / rate.done);
    await gate.quiet();
    guests.push(await rateOf(plan.seconds / 3, () => oneGuest(substrate)));
    await gate.quiet();
    bwrap.push(await rateOf(plan.seconds / 3, bwrapTrue));
  }
  for (const client of clients) client.close();
  const perSecond = (rates: readonly Rate[]): number[] => rates.map((rate) => rate.perSecond);
  const cpuSeconds = (rates: readonly Rate[]): number[] => rates.map((rate) => rate.cpuSeconds);
  return {
    seconds: plan.rounds * plan.seconds,
    executions: perSecond(executions),
    guests: perSecond(guests),
    bwrap: perSecond(bwrap),
    cpuSeconds: { executions: cpuSeconds(executions), guests: cpuSeconds(guests) },
    ownCpuSeconds,
  };
}

export function summariseSustained({
  seconds,
  executions,
  guests,
  bwrap,
  cpuSeconds,
  ownCpuSeconds,
}: SustainedRounds): SustainedStarts {
  return {
    rounds: executions.length,
    seconds,
    executionsPerSecond: rounded(median(executions)),
    cpuSecondsPerExecution: rounded(median(cpuSeconds.executions)),
    ownCpuSecondsPerExecution: rounded(median(ownCpuSeconds)),
    guestsPerSecond: rounded(median(guests)),
    cpuSecondsPerGuest: rounded(median(cpuSeconds.guests)),
    bwrapPerSecond: rounded(median(bwrap)),
  };
}

/** It counts only when its pid 1 has proved who it is. */
async function oneGuest(substrate: NamespaceSubstrate): Promise<void> {
  const guest = await startGuest(substrate);
  try {
    (await connectTo(guest)).destroy();
  } finally {
    await substrate.stop(guest.activationId);
  }
}

const bwrapArguments =
  "--unshare-all --die-with-parent --new-session --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp -- /usr/bin/true".split(
    " ",
  );

/** `bwrap` with the same namespaces and `true` inside, from start to end. Resolves with the milliseconds. */
export function bwrapTrue(): Promise<number> {
  const beganMs = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn("bwrap", bwrapArguments, { stdio: "ignore", env: {} });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve(performance.now() - beganMs) : reject(new Error(`bwrap ended with ${code}`)),
    );
  });
}

interface Rate {
  readonly done: number;
  readonly perSecond: number;
  readonly cpuSeconds: number;
}

async function rateOf(seconds: number, work: (caller: number) => Promise<unknown>): Promise<Rate> {
  const busyBefore = busySeconds();
  const beganMs = performance.now();
  const untilMs = beganMs + seconds * 1000;
  let done = 0;
  const run = async (caller: number): Promise<void> => {
    while (performance.now() < untilMs) {
      await work(caller);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)));
  const tookSeconds = (performance.now() - beganMs) / 1000;
  return { done, perSecond: done / tookSeconds, cpuSeconds: (busySeconds() - busyBefore) / done };
}

function at(clients: readonly SandboxClient[], caller: number): SandboxClient {
  const client = clients[caller];
  if (client === undefined) throw new TypeError("a client was opened for each caller");
  return client;
}
