// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import type { NamespaceSubstrate } from "@space/substrate-namespace";
import { connectTo, spawnTrue, startGuest } from "./bench-guest.ts";
import type { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import type { QuietGate } from "./quiet-gate.ts";
import { oneExecution } from "./start-run.ts";
import { bwrapTrue } from "./sustained-starts.ts";
import { UnsoundRun } from "./unsound.ts";

/** Milliseconds, round by round; all of a round were taken in turns. */
export interface ClaimSamples {
  /** Through the API, with the pool full: from the request to create to the first command's result. */
  readonly whole: readonly number[][];
  /** The same, up to the answer to create. */
  readonly create: readonly number[][];
  /** The substrate alone, from its pool: from the claim to the first command's end. */
  readonly claimed: readonly number[][];
  /** The same without a pool. */
  readonly cold: readonly number[][];
  readonly bwrap: readonly number[][];
}

export interface ClaimPorts {
  readonly system: BenchmarkedSystem;
  readonly prepared: NamespaceSubstrate;
  readonly cold: NamespaceSubstrate;
  readonly gate: QuietGate;
}

/** Longer than a pool takes to be full again after one start. */
const refillMs = 60;
const fullLimitMs = 5_000;

export async function sampleClaims(
  { rounds, each }: { readonly rounds: number; readonly each: number },
  { system, prepared, cold, gate }: ClaimPorts,
): Promise<ClaimSamples> {
  const samples = {
    whole: [] as number[][],
    create: [] as number[][],
    claimed: [] as number[][],
    cold: [] as number[][],
    bwrap: [] as number[][],
  };
  const client = await system.client();
  for (let round = 0; round < rounds; round++) {
    for (const list of Object.values(samples)) list.push([]);
    await gate.quiet();
    for (let done = 0; done < each; done++) {
      await pause(refillMs);
      const { createMs, wholeMs } = await oneExecution(client);
      samples.create[round]?.push(createMs);
      samples.whole[round]?.push(wholeMs);
      await untilSpare(prepared);
      samples.claimed[round]?.push(await firstCommand(prepared, true));
      samples.cold[round]?.push(await firstCommand(cold, false));
      samples.bwrap[round]?.push(await bwrapTrue());
    }
  }
  client.close();
  return samples;
}

async function firstCommand(substrate: NamespaceSubstrate, fromPool: boolean): Promise<number> {
  const beganMs = performance.now();
  const guest = await startGuest(substrate);
  // The group keeps the name that the spare had.
  if (guest.evidence.cgroup.startsWith("spare-") !== fromPool)
    throw new UnsoundRun(`a guest was ${fromPool ? "not " : ""}from a pool`);
  try {
    const connection = await connectTo(guest);
    await spawnTrue(connection);
    const tookMs = performance.now() - beganMs;
    connection.destroy();
    return tookMs;
  } finally {
    await substrate.stop(guest.activationId);
  }
}

/** Resolves when a guest is ready to be claimed. */
async function untilSpare({ launchClient }: NamespaceSubstrate): Promise<void> {
  const untilMs = performance.now() + fullLimitMs;
  for (;;) {
    const listing = await launchClient.list();
    if (listing.some(({ name }) => name.startsWith("spare-"))) return;
    if (performance.now() > untilMs) throw new UnsoundRun("the pool stays empty");
    await pause(5);
  }
}
