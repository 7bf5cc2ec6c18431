// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type BenchGuest, connectTo, spawnTrue } from "./bench-guest.ts";
import type { ReadySystem } from "./path-contenders.ts";
import type { QuietGate } from "./quiet-gate.ts";
import { median, medianRatio, percentile } from "./statistics.ts";

export interface ExecResult {
  readonly wholePathP50Ms: number;
  readonly wholePathP99Ms: number;
  readonly guestAloneP50Ms: number;
  /** Median over the rounds of the ratio of their medians. */
  readonly ratio: number | undefined;
}

/** `/bin/true` through the whole authorised path, and by the guest's own pid 1 over its socket, in turn. */
export async function sampleExec(
  { system, sandbox }: ReadySystem,
  guest: BenchGuest,
  plan: { readonly rounds: number; readonly each: number; readonly gate: QuietGate },
): Promise<ExecResult> {
  const client = await system.client();
  const whole: number[][] = [];
  const alone: number[][] = [];
  try {
    for (let round = 0; round < plan.rounds; round++) {
      await plan.gate.quiet();
      whole.push(await repeat(plan.each, () => timed(() => client.runTrue(sandbox))));
      alone.push(await repeat(plan.each, () => timedSpawn(guest)));
    }
  } finally {
    client.close();
  }
  return {
    wholePathP50Ms: median(whole.flat()),
    wholePathP99Ms: percentile(whole.flat(), 99),
    guestAloneP50Ms: median(alone.flat()),
    ratio: medianRatio(whole.map(median), alone.map(median)),
  };
}

async function repeat(count: number, once: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  for (let done = 0; done < count; done++) values.push(await once());
  return values;
}

/** The connection is opened before: only the spawn is timed, as the bridge keeps none for it either and opens one in time. */
async function timedSpawn(guest: BenchGuest): Promise<number> {
  const connection = await connectTo(guest);
  return timed(() => spawnTrue(connection));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return performance.now() - beganMs;
}
