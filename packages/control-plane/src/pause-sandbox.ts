// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  ApiCaller,
  ChangeReason,
  CommittedManifest,
  Digest,
  SandboxChange,
  SandboxId,
  SandboxRecord,
  SandboxView,
} from "@space/model";
import { abortPause, whyNotCommitted } from "./abort-pause.ts";
import { askForSnapshot, claimPausing, type Pausing, workerOf } from "./claim-pausing.ts";
import { codeOf, workerFailure } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import type { RestorePoint } from "./restore-point.ts";
import { viewOf } from "./sandbox-view.ts";
import { within } from "./transitions.ts";
import { whenRunning } from "./turns.ts";

/**
 * Pauses a running sandbox. Others' transitions of it are waited for. Throws `sandbox/state` when it is paused already or
 * cannot be; when the snapshot fails, the worker's failure, with the sandbox running on.
 */
export async function pauseSandbox(
  parts: ControlParts,
  { keepMemory, ...of }: { caller: ApiCaller; sandboxId: SandboxId; keepMemory: boolean },
): Promise<SandboxView> {
  const paused = await whenRunning(parts, of, (record) =>
    pauseRunning(parts, record, { keepMemory, why: "asked" }),
  );
  return viewOf(paused);
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
  const worker = workerOf(parts, record);
  const pausing = await claimPausing(parts, { record, worker }, { kind: "claim-pause", why });
  return (
    pausing &&
    parts.transitions.run(record.sandboxId, "pause", () => drive(parts, { ...pausing, keepMemory }))
  );
}

interface PausePlan extends Pausing {
  readonly keepMemory: boolean;
}

/** A snapshot that was verified, and is ready to be committed. */
export interface TakenSnapshot extends RestorePoint {
  readonly committed: CommittedManifest;
}

async function drive(parts: ControlParts, plan: PausePlan): Promise<SandboxRecord> {
  return commit(parts, plan, await takeSnapshot(parts, plan));
}

/** Has the worker make the snapshot, and verifies it. Whatever fails aborts the pause. Throws the worker's failure. */
export async function takeSnapshot(parts: ControlParts, pausing: Pausing): Promise<TakenSnapshot> {
  try {
    const { manifest, digest, countersigned, sizeBytes } = await askForSnapshot(parts, pausing, "pause");
    const { previousManifest: previous, memory } = manifest;
    return { manifest, digest, committed: { countersigned, digest, previous, memory, sizeBytes } };
  } catch (cause) {
    await abortPause(parts, pausing.claimed, `failed: ${codeOf(cause)}`);
    throw workerFailure(cause, "snapshot");
  }
}

type CommitOfPause = Extract<SandboxChange, { readonly manifest: CommittedManifest }>;

async function commit(
  parts: ControlParts,
  { claimed, worker, keepMemory }: PausePlan,
  { manifest, digest, committed }: TakenSnapshot,
): Promise<SandboxRecord> {
  const isKept = keepMemory && manifest.memory !== "none";
  return commitPause(parts, claimed, {
    change: {
      kind: "commit-pause",
      manifest: committed,
      frozenOn: isKept ? worker.workerId : null,
      endAtMs: parts.clock.wallMs(),
    },
    keepFrozen: isKept ? digest : null,
  });
}

/**
 * The commit of the manifest and the abort of the pause are writes on one revision: exactly one wins. Whatever the worker
 * answers to its order, or not: this generation never runs again. Throws when it was not committed, `sandbox/not-found` where it
 * was killed.
 */
export async function commitPause(
  parts: ControlParts,
  claimed: SandboxRecord,
  { change, keepFrozen }: { readonly change: CommitOfPause; readonly keepFrozen: Digest | null },
): Promise<SandboxRecord> {
  const written = parts.sandboxes.change({
    on: claimed,
    change,
    effects: [{ kind: "retire", identity: claimed.execution.identity, keepFrozen }],
    why: "done",
  });
  const outcome = await written.catch(async (error: unknown) => {
    await abortPause(parts, claimed, `failed: ${codeOf(error)}`); // changes nothing where the commit was written after all
    throw error;
  });
  if (outcome.kind !== "won") throw await whyNotCommitted(parts, claimed);
  await within(parts.clock, parts.limits.confirmMs, parts.feeds.deliver(outcome.effects));
  return outcome.record;
}
