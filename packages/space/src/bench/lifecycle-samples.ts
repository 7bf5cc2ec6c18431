// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import type { LifecycleVariant } from "./lifecycle-variants.ts";
import { MeasuredSandbox } from "./measured-sandbox.ts";
import type { QuietGate } from "./quiet-gate.ts";
import { median } from "./statistics.ts";
import { bwrapTrue } from "./sustained-starts.ts";
import { UnsoundRun } from "./unsound.ts";

export const lifecycleOperations = ["pause", "resumeSame", "resumeOther", "move", "fork"] as const;
export type LifecycleOperation = (typeof lifecycleOperations)[number];

/** One operation of one round, from the request to its answer. */
export interface LifecycleSample {
  readonly ms: number;
  /** Of SPACE's own processes meanwhile, to a hundredth of a second. */
  readonly cpuSeconds: number;
  /** `bwrap` and `true`, just before. */
  readonly bwrapMs: number;
}

export interface LifecycleSamples {
  readonly operations: Readonly<Record<LifecycleOperation, readonly LifecycleSample[]>>;
  /** Of each pause. */
  readonly snapshotBytes: readonly number[];
}

export interface LifecyclePorts {
  readonly system: BenchmarkedSystem;
  readonly variant: LifecycleVariant;
  readonly gate: QuietGate;
}

const baselinesEach = 3;

/** One sandbox, round after round: each operation, and after each the proof that nothing was lost that was to be kept. */
export async function sampleLifecycle(
  { rounds, megabytes }: { readonly rounds: number; readonly megabytes: number },
  { system, variant, gate }: LifecyclePorts,
): Promise<LifecycleSamples> {
  const samples: Record<LifecycleOperation, LifecycleSample[]> = {
    pause: [],
    resumeSame: [],
    resumeOther: [],
    move: [],
    fork: [],
  };
  const snapshotBytes: number[] = [];
  const client = await system.client();
  const sandbox = await MeasuredSandbox.create(client, megabytes);
  const { movesMemory } = variant;
  const timed = async (operation: LifecycleOperation, act: () => Promise<unknown>): Promise<void> => {
    samples[operation].push(await sample(system, act));
  };
  for (let round = 0; round < rounds; round++) {
    await gate.quiet();
    const { workerId: home } = await sandbox.place();
    const away = otherThan(home, system);
    await timed("pause", () => sandbox.pause());
    snapshotBytes.push((await sandbox.place()).snapshotBytes ?? 0);
    await timed("resumeSame", () => sandbox.resume(home));
    await sandbox.check(true);
    await sandbox.pause();
    await timed("resumeOther", () => sandbox.resume(away));
    await sandbox.check(movesMemory);
    await timed("move", () => sandbox.move(home));
    await sandbox.check(movesMemory);
    let endChild: (() => Promise<void>) | undefined;
    await timed("fork", async () => {
      endChild = await sandbox.fork();
    });
    await endChild?.();
    await sandbox.check(true);
  }
  await sandbox.kill();
  client.close();
  return { operations: samples, snapshotBytes };
}

async function sample(system: BenchmarkedSystem, act: () => Promise<unknown>): Promise<LifecycleSample> {
  const baselines: number[] = [];
  while (baselines.length < baselinesEach) baselines.push(await bwrapTrue());
  const cpuBefore = system.cpuSeconds();
  const beganMs = performance.now();
  await act();
  const ms = performance.now() - beganMs;
  return { ms, cpuSeconds: system.cpuSeconds() - cpuBefore, bwrapMs: median(baselines) };
}

function otherThan(home: string, { address }: BenchmarkedSystem): string {
  const other = address.workerIds.find((workerId) => workerId !== home);
  if (other === undefined) throw new UnsoundRun("there is no other worker");
  return other;
}
