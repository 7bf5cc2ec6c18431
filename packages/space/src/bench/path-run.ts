// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import { ensureTools, runFolder } from "./bench-tools.ts";
import { servedFileUrlPath } from "./contender.ts";
import { withEnding } from "./ending.ts";
import { type ExecResult, sampleExec } from "./exec-samples.ts";
import type { JudgedGoal } from "./goals.ts";
import { LoadGenerator } from "./load-generator.ts";
import { type LoadSample, pick, sampleInRounds } from "./load-samples.ts";
import { type MachineFacts, machineFacts } from "./machine.ts";
import { type PathContenders, type ReadySystem, startPathContenders } from "./path-contenders.ts";
import { judgePath } from "./path-goals.ts";
import { QuietGate } from "./quiet-gate.ts";
import { median, rounded } from "./statistics.ts";
import { UnsoundRun } from "./unsound.ts";

const connectionCounts = [1, 16, 64] as const;

export interface ContenderSummary {
  readonly contender: string;
  readonly what: string;
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly cpuUs: Readonly<Record<string, number>>;
}

export interface PathReport {
  readonly bench: "path";
  readonly machine: MachineFacts;
  readonly rounds: number;
  readonly samplesWhileBusy: string;
  /** The worker's own verdicts on a capability with an altered signature: the proof of which worker verifies. */
  readonly altered: { readonly path: string; readonly pathUnchecked: string };
  readonly contenders: readonly ContenderSummary[];
  /** What verification costs one request of the whole path: CPU of the worker, and latency at one connection. */
  readonly verificationUs: { readonly workerCpu: number; readonly latency: number };
  readonly exec: ExecResult;
  readonly requests: number;
  readonly errors: number;
  readonly goals: readonly JudgedGoal[];
  readonly samples: readonly LoadSample[];
}

/** Measures the whole path beside its baselines. Throws {@link UnsoundRun} when the run itself cannot be believed. */
export function benchPath(quick: boolean, progress: (line: string) => void): Promise<PathReport> {
  return withEnding(async (ending) => {
    await ensureTools([
      { name: "wrk", command: "wrk" },
      { name: "nginx-light", command: "nginx" },
    ]);
    const folder = runFolder(ending);
    const contenders = await startPathContenders(folder, ending);
    progress(`${contenders.all.length} contenders run`);
    const altered = await proveVerification(contenders);
    const generator = new LoadGenerator(folder);
    ending.add(() => generator.close());
    const gate = new QuietGate();
    const rounds = quick ? 2 : 5;
    const ports = { generator, gate, mustRun: () => contenders.mustRun(), progress };
    const warmUp = { contenders: contenders.all, connections: [16], rounds: [0], seconds: 1 };
    await sampleInRounds(warmUp, { ...ports, progress: () => undefined });
    const samples = await sampleInRounds(
      {
        contenders: contenders.all,
        connections: connectionCounts,
        rounds: Array.from({ length: rounds }, (_, round) => round),
        seconds: quick ? 1 : 2,
      },
      ports,
    );
    const exec = await sampleExec(contenders.checked, contenders.guest, {
      rounds,
      each: quick ? 30 : 60,
      gate,
    });
    return report(contenders, { samples, exec, altered, rounds, gate });
  });
}

interface Measured {
  readonly samples: readonly LoadSample[];
  readonly exec: ExecResult;
  readonly altered: PathReport["altered"];
  readonly rounds: number;
  readonly gate: QuietGate;
}

function report(contenders: PathContenders, measured: Measured): PathReport {
  const { samples, exec, altered, rounds, gate } = measured;
  const sum = (value: (sample: LoadSample) => number): number =>
    samples.reduce((total, sample) => total + value(sample), 0);
  const requests = sum((sample) => sample.requests);
  const errors = sum((sample) => sample.errors);
  if (errors > 0) throw new UnsoundRun(`${errors} of ${requests} requests failed`);
  const middle = (name: string, connections: number, value: (sample: LoadSample) => number): number =>
    median(pick(samples, name, connections).map(value));
  const between = (connections: number, value: (sample: LoadSample) => number): number =>
    rounded(middle("path", connections, value) - middle("path-unchecked", connections, value));
  return {
    bench: "path",
    machine: machineFacts(),
    rounds,
    samplesWhileBusy: `${gate.counts.loud} of ${gate.counts.passed}`,
    altered,
    contenders: contenders.all.flatMap(({ name, what }) =>
      connectionCounts.map((connections) =>
        summary(pick(samples, name, connections), { name, what, connections }),
      ),
    ),
    verificationUs: {
      workerCpu: between(64, ({ cpuUs }) => cpuUs["worker"] ?? 0),
      latency: between(1, ({ p50Us }) => p50Us),
    },
    exec,
    requests,
    errors,
    goals: judgePath(samples, { execRatio: exec.ratio, requests, errors }),
    samples,
  };
}

function summary(
  samples: readonly LoadSample[],
  { name, what, connections }: { name: string; what: string; connections: number },
): ContenderSummary {
  const middle = (value: (sample: LoadSample) => number): number => rounded(median(samples.map(value)));
  const roles = Object.keys(samples[0]?.cpuUs ?? {});
  return {
    contender: name,
    what,
    connections,
    requestsPerSecond: middle((sample) => sample.requestsPerSecond),
    p50Us: middle((sample) => sample.p50Us),
    p99Us: middle((sample) => sample.p99Us),
    cpuUs: Object.fromEntries(roles.map((role) => [role, middle(({ cpuUs }) => cpuUs[role] ?? 0)])),
  };
}

const verdictSchema = v.object({ verdict: v.string(), bodyBytes: v.number() });
const proofSchema = v.object({ signed: verdictSchema, altered: verdictSchema });

/** One worker verifies and the other does not: each is shown the same file's capability with one character altered. */
async function proveVerification({ checked, unchecked }: PathContenders): Promise<PathReport["altered"]> {
  const path = await verdictOn(checked);
  const pathUnchecked = await verdictOn(unchecked);
  if (path !== "deny")
    throw new UnsoundRun(`the verifying worker answered an altered capability with ${path}`);
  if (pathUnchecked !== "match") throw new UnsoundRun(`verification was not off: ${pathUnchecked}`);
  return { path, pathUnchecked };
}

async function verdictOn({ system, sandbox }: ReadySystem): Promise<string> {
  const proof = v.parse(proofSchema, await system.process.ask({ ...sandbox, path: servedFileUrlPath }));
  if (proof.signed.verdict !== "match" || proof.signed.bodyBytes === 0) {
    throw new UnsoundRun(`a good capability was answered with ${proof.signed.verdict}`);
  }
  return proof.altered.verdict;
}
