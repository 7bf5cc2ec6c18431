// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type BenchGuest, connectTo, spawnTrue } from "./bench-guest.ts";
import type { ExecSample } from "./path-goals.ts";
import type { QuietGate } from "./quiet-gate.ts";
import type { CreatedSandbox, SandboxClient } from "./sandbox-client.ts";

export interface ExecPlan {
  readonly rounds: number;
  /** Of each kind, in each round. */
  readonly each: number;
}

export interface ExecParts {
  readonly client: SandboxClient;
  readonly sandbox: CreatedSandbox;
  readonly guest: BenchGuest;
  readonly gate: QuietGate;
}

/**
 * G14: `/bin/true` through the whole path and, in turn, by the socket of a guest's own pid 1, which does nothing but
 * spawn it. The direct connections are opened before, as the bridge has some ready too.
 */
export async function sampleExecs(
  { rounds, each }: ExecPlan,
  parts: ExecParts,
): Promise<readonly ExecSample[]> {
  const samples: ExecSample[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const quiet = await parts.gate.quiet();
    const pathMs: number[] = [];
    const directMs: number[] = [];
    for (let index = 0; index < each; index += 1) {
      pathMs.push(await timed(() => parts.client.runTrue(parts.sandbox)));
      directMs.push(await direct(parts.guest));
    }
    samples.push({ round, quiet, pathMs, directMs });
  }
  return samples;
}

async function direct(guest: BenchGuest): Promise<number> {
  const connection = await connectTo(guest);
  try {
    return await timed(() => spawnTrue(connection));
  } finally {
    connection.destroy();
  }
}

/** How long the work took, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return performance.now() - beganMs;
}
