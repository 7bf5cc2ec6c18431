// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { sign, verify } from "node:crypto";
import { type Admission, admit, CapabilityVerifier } from "@space/capability";
import type { IdentityVerdict } from "@space/model";
import { type AuditCost, measureAuditCost } from "./audit-cost.ts";
import { type CapabilityScene, newScene } from "./capability-scene.ts";
import { type JoseKeys, joseKeys, joseSign, joseVerify } from "./jose-contender.ts";
import { type MachineFacts, machineFacts } from "./machine.ts";
import { QuietGate } from "./quiet-gate.ts";
import { measureRefusals, type RefusalReport } from "./refusal-load.ts";
import { median, medianRatio, percentile, rounded } from "./statistics.ts";

const rounds = { whole: 300, quick: 60 };
/** Calls of one sample: short enough that most samples are not interrupted. */
const chunk = { slow: 20, fast: 400 };

export interface ContenderReport {
  readonly name: string;
  readonly medianUs: number;
  readonly lowUs: number;
}

export interface CapabilityBenchReport {
  readonly bench: "capability";
  readonly machine: MachineFacts;
  readonly tokenBytes: number;
  readonly rounds: number;
  readonly gate: { readonly passed: number; readonly loud: number };
  readonly contenders: readonly ContenderReport[];
  readonly goals: readonly CapabilityGoal[];
  readonly refusals: RefusalReport;
  readonly audit: AuditCost;
  /** What makes the run worthless; then the exit code is 1. */
  readonly unsound: readonly string[];
}

export interface CapabilityGoal {
  readonly what: string;
  readonly limit: number;
  readonly found: number;
  readonly met: boolean;
}

interface Contender {
  readonly name: string;
  readonly calls: number;
  /** One call, the n-th of the run; false makes the run worthless. */
  readonly run: (index: number) => boolean | Promise<boolean>;
  readonly isAsync?: true;
}

/**
 * What a capability costs, beside `jose` and the bare primitive on the same tokens: every round takes one short sample of
 * each in turn, so that whatever slowed the machine slowed them all. Then refusals at full rate.
 */
export async function benchCapability(
  quick: boolean,
  progress: (line: string) => void,
): Promise<CapabilityBenchReport> {
  const scene = newScene();
  const contenders = contendersOf(scene, await joseKeys(scene));
  const gate = new QuietGate();
  const samples = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  const unsound: string[] = [];
  const count = quick ? rounds.quick : rounds.whole;
  for (const contender of contenders) await sample(contender, 0); // compiles before it counts
  for (let round = 0; round < count; round += 1) {
    if (round % 30 === 0) {
      progress(`round ${round + 1} of ${count}`);
      await gate.quiet();
    }
    for (const contender of contenders) {
      const { us, good } = await sample(contender, round);
      samples.get(contender.name)?.push(us);
      if (!good) unsound.push(`${contender.name} gave a wrong answer`);
    }
  }
  const refusals = measureRefusals(scene, quick);
  const audit = await measureAuditCost(quick);
  if (audit.dropped > 0) unsound.push(`${audit.dropped} audit events found no room`);
  if (refusals.served > 0) unsound.push(`${refusals.served} requests that must be refused were served`);
  if (refusals.goodRefused > 0) unsound.push(`${refusals.goodRefused} good requests were refused`);
  return {
    bench: "capability",
    machine: machineFacts(),
    tokenBytes: scene.tokens[0]?.length ?? 0,
    rounds: count,
    gate: gate.counts,
    contenders: contenders.map(({ name }) => summarise(name, samples.get(name) ?? [])),
    goals: goalsOf(samples),
    refusals,
    audit,
    unsound: [...new Set(unsound)],
  };
}

function contendersOf(scene: CapabilityScene, jose: JoseKeys): readonly Contender[] {
  const { tokens, pieces, key, ring } = scene;
  const at = <T>(list: readonly T[], index: number): T => list[index % list.length] as T; // cast: lists here are not empty
  const warm = new CapabilityVerifier({ keys: ring });
  for (const token of tokens) warm.verify(token);
  let cold = new CapabilityVerifier({ keys: ring });
  const decide = (token: string, verifier: CapabilityVerifier): IdentityVerdict =>
    admit({ ...scene.request, nowMs: scene.nowMs, verification: verifier.verify(token) } satisfies Admission);
  const verification = warm.verify(tokens[0] ?? "");
  const admission: Admission = { ...scene.request, nowMs: scene.nowMs, verification };
  const slow = { calls: chunk.slow };
  const fast = { calls: chunk.fast };
  return [
    {
      name: "node:crypto sign",
      ...slow,
      run: (n) => sign(null, at(pieces, n).signed, key.privateKey).length === 64,
    },
    { name: "space sign", ...slow, run: () => scene.issue().length > 0 },
    {
      name: "jose sign",
      ...slow,
      isAsync: true,
      run: async (n) => (await joseSign(jose, at(pieces, n).payload)).length > 0,
    },
    {
      name: "node:crypto verify",
      ...slow,
      run: (n) => verify(null, at(pieces, n).signed, key.publicKey, at(pieces, n).signature),
    },
    {
      name: "space verify cold",
      ...slow,
      run: (n) => {
        if (n % tokens.length === 0) cold = new CapabilityVerifier({ keys: ring }); // so that it has seen none of them
        return cold.verify(at(tokens, n)).kind === "verified";
      },
    },
    { name: "jose verify", ...slow, isAsync: true, run: (n) => joseVerify(jose, at(tokens, n)) },
    { name: "space verify remembered", ...fast, run: (n) => warm.verify(at(tokens, n)).kind === "verified" },
    { name: "space compare", ...fast, run: () => admit(admission).kind === "match" },
    {
      name: "space remembered and compare",
      ...fast,
      run: (n) => decide(at(tokens, n), warm).kind === "match",
    },
  ];
}

async function sample(
  { run, calls, isAsync }: Contender,
  round: number,
): Promise<{ readonly us: number; readonly good: boolean }> {
  let good = true;
  const from = round * calls;
  const beganMs = performance.now();
  if (isAsync) for (let n = from; n < from + calls; n += 1) good = (await run(n)) && good;
  else for (let n = from; n < from + calls; n += 1) good = run(n) === true && good;
  return { us: ((performance.now() - beganMs) * 1000) / calls, good };
}

function summarise(name: string, values: readonly number[]): ContenderReport {
  return { name, medianUs: rounded(median(values)), lowUs: rounded(percentile(values, 5)) };
}

/** Goals are about a quiet machine: absolute times by their low percentile, ratios round by round. */
function goalsOf(samples: ReadonlyMap<string, readonly number[]>): readonly CapabilityGoal[] {
  const of = (name: string): readonly number[] => samples.get(name) ?? [];
  const known = percentile(of("space remembered and compare"), 5);
  const ratio = medianRatio(of("space verify cold"), of("node:crypto verify")) ?? Number.NaN;
  return [
    {
      what: "remembered verify and full comparison, microseconds",
      limit: 5,
      found: rounded(known),
      met: known < 5,
    },
    {
      what: "cold verify against bare node:crypto verify, ratio",
      limit: 1.1,
      found: rounded(ratio),
      met: ratio <= 1.1,
    },
  ];
}

export function tellCapability(report: CapabilityBenchReport): string {
  const { contenders, goals, refusals, audit, unsound, gate } = report;
  const lines = [
    `a capability of ${report.tokenBytes} bytes, ${report.rounds} rounds, ${gate.loud} of ${gate.passed} looks found the machine busy`,
    ...contenders.map(
      ({ name, medianUs, lowUs }) => `  ${name.padEnd(30)} ${lowUs} us low, ${medianUs} us median`,
    ),
    ...goals.map(
      ({ what, limit, found, met }) => `  ${met ? "met   " : "MISSED"} ${what}: ${found}, goal ${limit}`,
    ),
    ...refusals.kinds.map(({ kind, sent, refused }) => `  refused ${refused} of ${sent}: ${kind}`),
    `  ${refusals.perSecond} decisions a second, ${refusals.served} served that must not be`,
    `  audit of an issue: ${audit.lowUs} us low, ${audit.medianUs} us median where it happens; ${audit.wholeCpuUs} us of CPU with chain, file and checkpoints`,
    ...unsound.map((problem) => `  UNSOUND: ${problem}`),
  ];
  return `${lines.join("\n")}\n`;
}
