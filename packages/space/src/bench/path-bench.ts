// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import { ensureTools, runFolder } from "./bench-tools.ts";
import { type Contender, servedFile, servedFileUrlPath } from "./contender.ts";
import { withEnding } from "./ending.ts";
import { sampleExecs } from "./exec-samples.ts";
import type { JudgedGoal } from "./goals.ts";
import { LoadGenerator } from "./load-generator.ts";
import { type LoadPlan, type LoadPorts, type LoadSample, sampleInRounds } from "./load-samples.ts";
import { type MachineFacts, machineFacts } from "./machine.ts";
import { type PathContenders, type ReadySystem, startPathContenders } from "./path-contenders.ts";
import { type ExecSample, judgePath } from "./path-goals.ts";
import { QuietGate } from "./quiet-gate.ts";
import { UnsoundRun } from "./unsound.ts";
import { measureVerification, type VerificationCost } from "./verification-cost.ts";

const connections = [1, 16, 64] as const;
/** G16: failures are counted over at least so many requests. */
const countedRequests = 100_000;
/** Longest search for them: a path so slow has other troubles. */
const extraRoundsLimit = 100;

/** So long before the first sample each contender is at work: a daemon that has just started still compiles itself. */
const warmSeconds = 5;
const warmExecs = 1000;

/** What the run showed to both workers: the same capability, and one whose signature was altered. */
export interface VerificationProof {
  readonly checkedServedAltered: boolean;
  readonly uncheckedServedAltered: boolean;
}

export interface PathResult {
  readonly bench: "path";
  readonly machine: MachineFacts;
  readonly gate: QuietGate["counts"];
  readonly contenders: readonly Pick<Contender, "name" | "what">[];
  readonly samples: readonly LoadSample[];
  readonly execs: readonly ExecSample[];
  readonly verification: VerificationCost;
  readonly proof: VerificationProof;
  readonly goals: readonly JudgedGoal[];
}

/** Measures the whole path beside its baselines. Throws {@link UnsoundRun} when the run itself cannot be believed. */
export function benchPath(quick: boolean, progress: (line: string) => void): Promise<PathResult> {
  return withEnding(async (ending) => {
    await ensureTools([
      { name: "wrk", command: "wrk" },
      { name: "nginx-light", command: "nginx" },
    ]);
    const folder = runFolder(ending);
    const generator = new LoadGenerator(folder);
    ending.add(() => generator.close());
    const contenders = await startPathContenders(folder, ending);
    progress(`${contenders.all.length} contenders run`);
    const proof = await prove(contenders);
    const gate = new QuietGate();
    const ports: LoadPorts = { generator, gate, progress, mustRun: () => contenders.mustRun() };
    const samples = await measureLoad(contenders, ports, quick);
    progress("commands");
    const execs = await commands(contenders, gate, quick);
    await gate.quiet();
    return {
      bench: "path",
      machine: machineFacts(),
      gate: gate.counts,
      contenders: contenders.all.map(({ name, what }) => ({ name, what })),
      samples,
      execs,
      verification: measureVerification(contenders.kit),
      proof,
      goals: judgePath(samples, execs),
    };
  });
}

async function measureLoad(
  contenders: PathContenders,
  ports: LoadPorts,
  quick: boolean,
): Promise<readonly LoadSample[]> {
  await checkAnswers(contenders.all);
  const plan: LoadPlan = {
    contenders: contenders.all,
    connections,
    rounds: Array.from({ length: quick ? 3 : 7 }, (_, round) => round),
    seconds: 1,
  };
  await sampleInRounds({ ...plan, connections: [16], rounds: [0], seconds: warmSeconds }, silent(ports));
  const samples = [...(await sampleInRounds(plan, ports))];
  samples.push(...(await countMore(samples, plan, ports)));
  await checkAnswers(contenders.all);
  checkSizes(samples);
  const failed = samples.reduce((sum, { errors }) => sum + errors, 0);
  if (failed > 0) throw new UnsoundRun(`${failed} requests failed`);
  return samples;
}

function silent(ports: LoadPorts): LoadPorts {
  return {
    ...ports,
    progress: () => undefined,
    gate: new QuietGate({ busyCores: 2, windowMs: 1, waitMs: 0, totalWaitMs: 0 }),
  };
}

/** Further rounds of the path alone, checked and unchecked in turn, until enough requests were counted. */
async function countMore(
  samples: readonly LoadSample[],
  plan: LoadPlan,
  ports: LoadPorts,
): Promise<readonly LoadSample[]> {
  const contenders = plan.contenders.filter(({ name }) => name === "path" || name === "path-unchecked");
  const more: LoadSample[] = [];
  const counted = (): number =>
    [...samples, ...more]
      .filter(({ contender }) => contender === "path")
      .reduce((sum, { requests }) => sum + requests, 0);
  for (let round = plan.rounds.length; counted() < countedRequests; round += 1) {
    if (more.length > 2 * extraRoundsLimit)
      throw new UnsoundRun("the path answers too slowly to count its failures");
    more.push(...(await sampleInRounds({ ...plan, contenders, connections: [16], rounds: [round] }, ports)));
  }
  return more;
}

async function commands(
  contenders: PathContenders,
  gate: QuietGate,
  quick: boolean,
): Promise<readonly ExecSample[]> {
  const { guest, checked } = contenders;
  const client = await checked.system.client();
  try {
    const parts = { client, sandbox: checked.sandbox, guest, gate };
    await sampleExecs({ rounds: 1, each: warmExecs }, parts);
    return await sampleExecs({ rounds: quick ? 5 : 9, each: 30 }, parts);
  } finally {
    client.close();
  }
}

const probeSchema = v.object({ verdict: v.string(), bodyBytes: v.number() });
const proofSchema = v.strictObject({ signed: probeSchema, altered: probeSchema });

/** That the one path refuses what nobody signed, and that the other one serves it: its verification is really off. */
async function prove({ checked, unchecked }: PathContenders): Promise<VerificationProof> {
  const servesAltered = async ({ system, sandbox }: ReadySystem): Promise<boolean> => {
    const { signed, altered } = v.parse(
      proofSchema,
      await system.process.ask({ ...sandbox, path: servedFileUrlPath }),
    );
    if (!isServed(signed)) throw new UnsoundRun("a good capability was refused");
    return isServed(altered);
  };
  const proof = {
    checkedServedAltered: await servesAltered(checked),
    uncheckedServedAltered: await servesAltered(unchecked),
  };
  if (proof.checkedServedAltered) throw new UnsoundRun("the checked path serves an altered capability");
  if (!proof.uncheckedServedAltered) throw new UnsoundRun("the unchecked path still verifies");
  return proof;
}

function isServed({ verdict, bodyBytes }: v.InferOutput<typeof probeSchema>): boolean {
  return verdict === "match" && bodyBytes === servedFile.content.length;
}

/** Every contender serves the very bytes. */
async function checkAnswers(contenders: readonly Contender[]): Promise<void> {
  for (const { name, target } of contenders) {
    if (name === "hello") continue; // it has no file
    const { url, headers, rotated } = await target(1);
    const shown = rotated === undefined ? {} : { [rotated.header]: rotated.values[0] ?? "" };
    const answer = await fetch(url, { headers: { ...headers, ...shown } });
    const body = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 200 || !body.equals(servedFile.content))
      throw new UnsoundRun(`${name} answered ${answer.status} with ${body.length} bytes`);
  }
}

/** Answers are all of one size: another size would be another answer. */
function checkSizes(samples: readonly LoadSample[]): void {
  const usual = new Map<string, number>();
  for (const { contender, bytesPerRequest } of samples) {
    const expected = usual.get(contender) ?? bytesPerRequest;
    usual.set(contender, expected);
    if (Math.abs(bytesPerRequest - expected) > expected * 0.02)
      throw new UnsoundRun(`${contender} gave answers of another size`);
  }
}
