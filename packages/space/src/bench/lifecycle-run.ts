// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { openBenchSubstrate } from "./bench-guest.ts";
import { ensureTools, runFolder } from "./bench-tools.ts";
import { type ClaimSamples, sampleClaims } from "./claim-samples.ts";
import { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import { Ending, withEnding } from "./ending.ts";
import type { JudgedGoal } from "./goals.ts";
import { figuresOf, type VariantFigures } from "./lifecycle-figures.ts";
import { judgeClaims, judgeLifecycle } from "./lifecycle-goals.ts";
import { type LifecycleSamples, sampleLifecycle } from "./lifecycle-samples.ts";
import { findVariants, type LifecycleVariant, type LifecycleVariants } from "./lifecycle-variants.ts";
import { type MachineFacts, machineFacts } from "./machine.ts";
import { QuietGate } from "./quiet-gate.ts";
import { oneExecution, type Timing, timing } from "./start-run.ts";
import { type SustainedStarts, summariseSustained, sustain } from "./sustained-starts.ts";

export interface LifecycleReport {
  readonly bench: "lifecycle";
  readonly machine: MachineFacts;
  readonly gate: QuietGate["counts"];
  readonly missing: LifecycleVariants["missing"];
  readonly variants: readonly VariantFigures[];
  readonly claims: Readonly<Record<keyof ClaimSamples, Timing>>;
  readonly sustained: SustainedStarts;
  readonly goals: readonly JudgedGoal[];
}

export interface LifecycleOptions {
  readonly quick: boolean;
  /** How long executions are created, used and killed without a pause, in all rounds together. */
  readonly seconds: number;
}

const loads = [0, 64] as const;
const plans = {
  whole: { rounds: 10, claimRounds: 6, claimsEach: 10, sustainedRounds: 5 },
  quick: { rounds: 2, claimRounds: 2, claimsEach: 5, sustainedRounds: 2 },
} as const;

/** Measures what a sandbox's life costs on each substrate of this host, beside plain `bwrap`. */
export function benchLifecycle(
  { quick, seconds }: LifecycleOptions,
  progress: (line: string) => void,
): Promise<LifecycleReport> {
  const plan = plans[quick ? "quick" : "whole"];
  return withEnding(async (ending) => {
    await ensureTools([{ name: "bubblewrap", command: "bwrap" }]);
    const folder = runFolder(ending);
    const gate = new QuietGate();
    const { here, missing } = await findVariants();
    const starts = await measureStarts({ ...plan, seconds }, { folder, gate, ending });
    progress("starts done");
    const measured: { readonly figures: VariantFigures; readonly samples: LifecycleSamples }[] = [];
    for (const variant of here) {
      for (const { megabytes, samples } of await measureVariant(plan.rounds, variant, {
        folder,
        gate,
        ending,
      }))
        measured.push({ figures: figuresOf({ variant: variant.name, megabytes }, samples), samples });
      progress(`${variant.name} done`);
    }
    const variants = measured.map(({ figures }) => figures);
    return {
      bench: "lifecycle",
      machine: machineFacts(),
      gate: gate.counts,
      missing,
      variants,
      claims: claimTimings(starts.claims),
      sustained: summariseSustained(starts.sustained),
      goals: [...judgeLifecycle(variants), ...judgeClaims(starts.claims, starts.sustained)],
    };
  });
}

interface RunPorts {
  readonly folder: string;
  readonly gate: QuietGate;
  readonly ending: Ending;
}

/** Runs with a system of its own, which ends with it, so that no two are there at once. */
async function withSystem<T>(
  { name, substrate, memory }: Pick<LifecycleVariant, "substrate" | "memory"> & { readonly name: string },
  { folder, ending }: RunPorts,
  work: (system: BenchmarkedSystem, ending: Ending) => Promise<T>,
): Promise<T> {
  const own = new Ending();
  ending.add(() => own.run());
  try {
    const system = await BenchmarkedSystem.start(
      { name, substrate, memory, folder, workers: 2, checked: true },
      own,
    );
    await system.settled();
    return await work(system, own);
  } finally {
    await own.run();
  }
}

function measureStarts(
  plan: {
    readonly claimRounds: number;
    readonly claimsEach: number;
    readonly sustainedRounds: number;
    readonly seconds: number;
  },
  ports: RunPorts,
) {
  const { folder, gate } = ports;
  return withSystem(
    { name: "starts", substrate: "namespace", memory: "frozen" },
    ports,
    async (system, own) => {
      const [cold, prepared] = [
        await openBenchSubstrate(folder, "cold", own),
        await openBenchSubstrate(folder, "prepared", own),
      ];
      own.add(() => cold.close("stopAll"));
      own.add(() => prepared.close("stopAll"));
      await warm(system);
      const claims = await sampleClaims(
        { rounds: plan.claimRounds, each: plan.claimsEach },
        { system, prepared, cold, gate },
      );
      const sustained = await sustain(
        { rounds: plan.sustainedRounds, seconds: plan.seconds / plan.sustainedRounds },
        { system, substrate: cold, gate, oneExecution },
      );
      return { claims, sustained };
    },
  );
}

const warmUps = 40;

/** A Node process that has just started still compiles itself. */
async function warm(system: BenchmarkedSystem): Promise<void> {
  const client = await system.client();
  for (let done = 0; done < warmUps; done++) await oneExecution(client);
  client.close();
}

function measureVariant(rounds: number, variant: LifecycleVariant, ports: RunPorts) {
  return withSystem(variant, ports, async (system) => {
    await sampleLifecycle({ rounds: 1, megabytes: 0 }, { system, variant, gate: ports.gate }); // warm
    const measured: { readonly megabytes: number; readonly samples: LifecycleSamples }[] = [];
    for (const megabytes of loads) {
      const samples = await sampleLifecycle({ rounds, megabytes }, { system, variant, gate: ports.gate });
      measured.push({ megabytes, samples });
    }
    return measured;
  });
}

function claimTimings({ whole, create, claimed, cold, bwrap }: ClaimSamples): LifecycleReport["claims"] {
  return {
    whole: timing(whole),
    create: timing(create),
    claimed: timing(claimed),
    cold: timing(cold),
    bwrap: timing(bwrap),
  };
}
