// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type SandboxRecord, SpaceError, type WorkerHandle } from "@space/model";
import { bringUp, giveUp } from "./bring-up.ts";
import { codeOf } from "./failures.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import { type RestoreFrom, readKept, readRestorePoint } from "./restore-point.ts";
import { planSeal } from "./sealed-chain.ts";

const interrupted = "interrupted";

/**
 * a start that another replica was driving. Where its worker is here now, this one drives it on as the next
 * attempt, if the process lives; the other's certificate and writes are refused from then on. Otherwise, and where it was
 * this process's own, it is given up. Resolves when it is given up, or on its way. Never throws.
 */
export async function takeOverStart(parts: ControlParts, record: SandboxRecord): Promise<void> {
  const { sandboxId, claim, execution } = record;
  const { workerId, podUid } = execution.identity.placement;
  const worker = parts.workers.find(workerId);
  const isOwn = claim?.owner === parts.owner;
  if (isOwn || worker === undefined || worker.podUid !== podUid) {
    await parts.transitions.run(sandboxId, "recover", () => giveUp(parts, record, interrupted));
    return;
  }
  parts.transitions
    .run(sandboxId, "recover", () => driveOn(parts, record, worker))
    .catch((error: unknown) => {
      parts.audit.record("upkeep/failed", { task: "take over a start", sandboxId, code: codeOf(error) });
    });
}

async function driveOn(parts: ControlParts, record: SandboxRecord, worker: WorkerHandle): Promise<void> {
  const change = { kind: "take-over", claim: newClaim(parts) } as const;
  const outcome = await parts.sandboxes.change({ on: record, change, why: interrupted });
  if (outcome.kind !== "won") return; // its owner, or a third one, was quicker
  const { record: claimed } = outcome;
  try {
    const from = await sourceOf(parts, claimed);
    await bringUp(parts, { record: claimed, worker, from, timeoutMs: lifeOf(parts, claimed) });
  } catch (error) {
    await giveUp(parts, claimed, interrupted); // changes nothing where that has been done
    throw error;
  }
}

async function sourceOf(parts: ControlParts, claimed: SandboxRecord): Promise<RestoreFrom | undefined> {
  if (claimed.snapshot === null) return parentOf(parts, claimed);
  const point = await readRestorePoint(parts, claimed);
  const key = await parts.tenantKeys.find(claimed.tenantId, point.manifest.keyId);
  const seal = await planSeal(parts, claimed.sandboxId);
  return seal && { ...point, key, seal, memory: "none" };
}

/** what a new sandbox begins with is kept as long as it is being created. */
async function parentOf(
  parts: ControlParts,
  { origin, tenantId }: SandboxRecord,
): Promise<RestoreFrom | undefined> {
  if (origin === null) return undefined;
  const kept = await parts.sandboxes.keptSnapshot(tenantId, origin.snapshotId);
  if (kept === undefined) throw new SpaceError("snapshot/refused", { problem: "missing" });
  return readKept(parts, kept);
}

/**
 * Whoever asked for it is not known here: it lives as long as when it was created, or for the rest of its time. What was
 * paused is past its end; what is not was being moved, and its times stay (null).
 */
function lifeOf({ clock }: ControlParts, { endAtMs, timeoutMs, state }: SandboxRecord): number | null {
  const restMs = endAtMs - clock.wallMs();
  if (restMs > 0 && state === "resuming") return null;
  return restMs > 0 ? restMs : timeoutMs;
}
