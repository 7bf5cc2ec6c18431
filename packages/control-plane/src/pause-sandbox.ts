// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ChangeReason,
  type SandboxId,
  type SandboxRecord,
  type SandboxView,
  SpaceError,
  type WorkerHandle,
} from "@space/model";
import { abortPause, whyNotCommitted } from "./abort-pause.ts";
import { codeOf, workerFailure } from "./failures.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import { type RestorePoint, verifyOffered } from "./restore-point.ts";
import { viewOf } from "./sandbox-view.ts";
import { requireSeal, type SealPlan, storeSeal } from "./sealed-chain.ts";
import { within } from "./transitions.ts";
import { awaitTurn, ownSandbox, startWaiting } from "./turns.ts";

/**
 * Pauses a running sandbox. Others' transitions of it are waited for. Throws `sandbox/state` when it is paused already or
 * cannot be; when the snapshot fails, the worker's failure, with the sandbox running on.
 */
export async function pauseSandbox(
  parts: ControlParts,
  { caller, sandboxId, keepMemory }: { caller: ApiCaller; sandboxId: SandboxId; keepMemory: boolean },
): Promise<SandboxView> {
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await ownSandbox(parts, caller, sandboxId);
    switch (record.state) {
      case "running": {
        const paused = await pauseRunning(parts, record, { keepMemory, why: "asked" });
        if (paused !== undefined) return viewOf(paused);
        break; // something else was quicker: look again
      }
      case "creating":
      case "pausing":
      case "resuming":
        await awaitTurn(parts, sandboxId, waiting);
        break;
      case "paused":
      case "killing":
      case "killed":
      case "failed":
      case "lost":
        throw new SpaceError("sandbox/state", { sandboxId, state: record.state });
    }
  }
}

/**
 * Pauses the sandbox if it still is as the record says (incident 32); undefined when it is not. A worker that is away
 * is found out before anything changes: throws `worker/unreachable`.
 */
export async function pauseRunning(
  parts: ControlParts,
  record: SandboxRecord,
  { keepMemory, why }: { readonly keepMemory: boolean; readonly why: ChangeReason },
): Promise<SandboxRecord | undefined> {
  const { workerId } = record.execution.identity.placement;
  const worker = parts.workers.find(workerId);
  if (worker === undefined) throw new SpaceError("worker/unreachable", { workerId });
  const seal = await requireSeal(parts, record.sandboxId);
  const change = { kind: "claim-pause", claim: newClaim(parts), sealed: seal.added } as const;
  const outcome = await parts.sandboxes.change({ on: record, change, why });
  if (outcome.kind !== "won") return undefined;
  const { record: claimed } = outcome;
  return parts.transitions.run(record.sandboxId, "pause", () =>
    drive(parts, { claimed, worker, keepMemory, seal }),
  );
}

interface PausePlan {
  readonly claimed: SandboxRecord;
  readonly worker: WorkerHandle;
  readonly keepMemory: boolean;
  readonly seal: SealPlan;
}

async function drive(parts: ControlParts, plan: PausePlan): Promise<SandboxRecord> {
  const { claimed, worker, seal } = plan;
  let point: RestorePoint;
  let countersigned: string;
  try {
    const { identity } = claimed.execution;
    // Asked for when the claim is written: a collector that goes through this key sees the pause, or comes before it.
    const key = await parts.tenantKeys.current(claimed.tenantId);
    await storeSeal(parts, seal, key);
    const follows = { previousManifest: claimed.snapshot?.digest ?? null, chain: seal.end.digest };
    const offered = await worker.control.snapshot(identity, follows, key);
    point = verifyOffered(claimed, offered, { ...follows, keyId: key.keyId });
    countersigned = parts.signer.countersign(offered.signed, point, "pause");
  } catch (cause) {
    await abortPause(parts, claimed, `failed: ${codeOf(cause)}`);
    throw workerFailure(cause, "snapshot");
  }
  return commit(parts, plan, { ...point, countersigned });
}

/** The commit of the manifest and the abort of the pause are writes on one revision: exactly one wins. */
async function commit(
  parts: ControlParts,
  { claimed, worker, keepMemory }: PausePlan,
  { manifest, digest, countersigned }: RestorePoint & { readonly countersigned: string },
): Promise<SandboxRecord> {
  const isKept = keepMemory && manifest.memory !== "none";
  const change = parts.sandboxes.change({
    on: claimed,
    change: {
      kind: "commit-pause",
      manifest: {
        countersigned,
        digest,
        previous: manifest.previousManifest,
        memory: manifest.memory,
        sizeBytes: manifest.filesystem.reduce((total, { sizeBytes }) => total + sizeBytes, 0),
      },
      frozenOn: isKept ? worker.workerId : null,
      endAtMs: parts.clock.wallMs(),
    },
    effects: [{ kind: "retire", identity: claimed.execution.identity, keepFrozen: isKept ? digest : null }],
    why: "done",
  });
  const outcome = await change.catch(async (error: unknown) => {
    await abortPause(parts, claimed, `failed: ${codeOf(error)}`); // changes nothing where the commit was written after all
    throw error;
  });
  if (outcome.kind !== "won") throw await whyNotCommitted(parts, claimed);
  // Whatever the worker answers, or not: this generation never runs again.
  await within(parts.clock, parts.limits.confirmMs, parts.feeds.deliver(outcome.effects));
  return outcome.record;
}
