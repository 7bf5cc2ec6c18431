// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  isSpaceError,
  type MovedSandbox,
  type MoveSandbox,
  type SandboxId,
  type SandboxRecord,
  type WorkerHandle,
} from "@space/model";
import { bringUp, giveUp } from "./bring-up.ts";
import { claimPausing, type Pausing, workerOf } from "./claim-pausing.ts";
import { codeOf, workerFailure } from "./failures.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import { commitPause, type TakenSnapshot, takeSnapshot } from "./pause-sandbox.ts";
import { memoryAt, nextIdentity, resumePaused } from "./resume-sandbox.ts";
import { viewOf } from "./sandbox-view.ts";
import { requireSeal } from "./sealed-chain.ts";
import { whenRunning } from "./turns.ts";

/**
 * Pausing here and resuming there, as one claim. Others' transitions of the sandbox are waited for. What cannot be begun
 * changes nothing; a snapshot that fails leaves it running; once that is committed it runs there, or where it was, or is
 * paused and intact. A kill wins at each write. Throws as `SandboxService.move` says.
 */
export function moveSandbox(
  parts: ControlParts,
  of: { readonly caller: ApiCaller; readonly sandboxId: SandboxId },
  request: MoveSandbox,
): Promise<MovedSandbox> {
  return whenRunning(parts, of, (record) => moveRunning(parts, record, request));
}

interface Moving extends Pausing {
  readonly to: WorkerHandle;
}

/** Moves the sandbox if it still is as the record says (incident 32); undefined when it is not. */
async function moveRunning(
  parts: ControlParts,
  record: SandboxRecord,
  { workerId }: MoveSandbox,
): Promise<MovedSandbox | undefined> {
  const { workerId: from, substrate } = record.execution.identity.placement;
  if (workerId === from) return { ...viewOf(record), memoryMoved: true };
  const worker = workerOf(parts, record);
  // A snapshot is of one substrate, and the worker that it is on is no other place.
  const placement = await parts.placements.choose(
    workerId,
    (one) => one.workerId !== from && one.substrate === substrate,
  );
  try {
    const pausing = await claimPausing(parts, { record, worker }, { kind: "claim-pause", why: "asked" });
    if (pausing === undefined) return undefined;
    const moving = { ...pausing, to: placement.worker, handsOver: parts.directMoves };
    return await parts.transitions.run(record.sandboxId, "move", () => drive(parts, moving));
  } finally {
    placement.release();
  }
}

async function drive(parts: ControlParts, moving: Moving): Promise<MovedSandbox> {
  const taken = await takeSnapshot(parts, moving);
  const committed = await commit(parts, moving, taken);
  try {
    const moved = await resumeThere(parts, { committed, moving, taken });
    return { ...viewOf(moved), memoryMoved: memoryAt(committed, moving.to.workerId) !== "none" };
  } catch (cause) {
    await goBack(parts, moving.claimed, cause);
    throw cause;
  }
}

/** From here on the generation that was paused never runs again. Its frozen processes wait, in case that it does not run there. */
function commit(
  parts: ControlParts,
  { claimed, worker, to }: Moving,
  taken: TakenSnapshot,
): Promise<SandboxRecord> {
  const isKept = taken.manifest.memory !== "none";
  return commitPause(parts, claimed, {
    change: {
      kind: "commit-move",
      manifest: taken.committed,
      frozenOn: isKept ? worker.workerId : null,
      identity: nextIdentity(parts, claimed, { worker: to }),
      claim: newClaim(parts),
    },
    keepFrozen: isKept ? taken.digest : null,
  });
}

/** Starts it there, or gives the claim back. Throws what a resume throws. */
async function resumeThere(
  parts: ControlParts,
  {
    committed,
    moving: { worker, to, handsOver },
    taken: { manifest, digest },
  }: { readonly committed: SandboxRecord; readonly moving: Moving; readonly taken: TakenSnapshot },
): Promise<SandboxRecord> {
  let from: Parameters<typeof bringUp>[1]["from"];
  try {
    const key = await parts.tenantKeys.find(committed.tenantId, manifest.keyId);
    const seal = await requireSeal(parts, committed.sandboxId);
    from = {
      manifest,
      digest,
      key,
      seal,
      memory: memoryAt(committed, to.workerId),
      ...(handsOver === true ? { heldAt: worker } : {}),
    };
  } catch (cause) {
    await giveUp(parts, committed, `failed: ${codeOf(cause)}`);
    throw workerFailure(cause, "start");
  }
  return bringUp(parts, { record: committed, worker: to, from, timeoutMs: null });
}

/** It was running, so it goes on where it was, if that can be: with its frozen processes, where there are some. Never throws. */
async function goBack(
  parts: ControlParts,
  { sandboxId, endAtMs }: SandboxRecord,
  cause: unknown,
): Promise<void> {
  if (isSpaceError(cause, "worker/unfenced")) return; // where it was, nobody answers
  try {
    const record = await parts.sandboxes.read(sandboxId);
    if (record?.state !== "paused") return;
    const timeoutMs = Math.max(0, endAtMs - parts.clock.wallMs());
    await resumePaused(parts, record, { timeoutMs, memory: true }, `failed: ${codeOf(cause)}`);
  } catch (error) {
    // It stays paused, and intact: whoever connects resumes it.
    parts.audit.record("upkeep/failed", { task: "go back after a move", sandboxId, code: codeOf(error) });
  }
}
