// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChangeReason,
  type ConnectSandbox,
  type ExecutionIdentity,
  type MemoryKept,
  newActivationId,
  nextGeneration,
  placementOn,
  type SandboxRecord,
  SpaceError,
  unreachable,
  type WorkerId,
} from "@space/model";
import { awaitPredecessors } from "./await-predecessors.ts";
import { bringUp } from "./bring-up.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import type { Placement } from "./placements.ts";
import { readRestorePoint } from "./restore-point.ts";
import { requireSeal } from "./sealed-chain.ts";

/**
 * Resumes a paused or lost sandbox as its next generation, if it still is as the record says; undefined when it is
 * not. When it fails, the sandbox is what it was, and intact. Throws `worker/unfenced`, `snapshot/refused`, `tenant-key/missing`, `limit/sandboxes`,
 * `worker/none-free` and the worker's failures.
 */
export async function resumePaused(
  parts: ControlParts,
  record: SandboxRecord,
  request: ConnectSandbox,
  why: ChangeReason,
): Promise<SandboxRecord | undefined> {
  const point = await readRestorePoint(parts, record);
  const key = await parts.tenantKeys.find(record.tenantId, point.manifest.keyId);
  const seal = await requireSeal(parts, record.sandboxId);
  const placement = await choose(parts, record, request);
  const { worker } = placement;
  try {
    await awaitPredecessors(parts, record, worker.workerId);
  } catch (error) {
    placement.release();
    throw error;
  }
  const claim = newClaim(parts);
  const identity = nextIdentity(parts, record, placement);
  const outcome = await parts.sandboxes
    .change({ on: record, change: { kind: "claim-resume", identity, claim, sealed: seal.added }, why })
    .finally(() => placement.release());
  switch (outcome.kind) {
    case "stale":
      return undefined;
    case "limit":
      throw new SpaceError("limit/sandboxes", { limit: outcome.limit });
    case "won": {
      const memory = request.memory ? memoryAt(record, worker.workerId) : "none";
      const from = { ...point, memory, key, seal };
      const plan = { record: outcome.record, worker, from, timeoutMs: request.timeoutMs };
      return parts.transitions.run(record.sandboxId, "resume", () => {
        return bringUp(parts, plan);
      });
    }
    default:
      return unreachable(outcome);
  }
}

/** What of the snapshot's memory is to be had on this worker. */
export function memoryAt({ snapshot }: SandboxRecord, workerId: WorkerId): MemoryKept {
  if (snapshot?.frozenOn === workerId) return "frozen-on-worker";
  return snapshot?.memory === "in-snapshot" ? "in-snapshot" : "none";
}

/**
 * The worker asked for; else, where memory is wanted, the one that holds the frozen processes; else the least loaded. A
 * holder that is away for a moment is waited for by the caller (`worker/unreachable`): memory is not given up lightly.
 */
async function choose(
  { workers, placements, limits }: ControlParts,
  { snapshot }: SandboxRecord,
  { workerId, memory }: ConnectSandbox,
): Promise<Placement> {
  const holderId = snapshot?.frozenOn ?? null;
  if (holderId !== null && (workerId === holderId || (workerId === undefined && memory))) {
    const holder = workers.find(holderId);
    if (holder !== undefined) return placements.reserve(holder); // it holds this one already
    if (workerId === holderId || workers.awayMs(holderId) < limits.awayMs) {
      throw new SpaceError("worker/unreachable", { workerId: holderId });
    }
  }
  return placements.choose(workerId);
}

/** of the next generation, on this worker. */
export function nextIdentity(
  parts: ControlParts,
  { sandboxId, generation }: SandboxRecord,
  { worker }: Pick<Placement, "worker">,
): ExecutionIdentity {
  return {
    sandboxId,
    generation: nextGeneration(generation),
    placement: placementOn(worker),
    activation: { id: newActivationId(parts.random), attempt: 1 },
  };
}
