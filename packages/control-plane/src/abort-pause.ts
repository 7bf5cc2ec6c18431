// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChangeReason, SandboxRecord, SpaceError, WorkerHandle } from "@space/model";
import { codeOf, isUnknown, notFound, takenOver } from "./failures.ts";
import { loseSandbox } from "./lose-sandbox.ts";
import { type ControlParts, claimGivenUp, leave, newClaim } from "./parts.ts";

/**
 * Ends a pause that is not to be committed, or a snapshot of what goes on: first the abort is recorded, so that no commit
 * on the older revision can win any more; then the guest really runs again, or is lost, and the state says which
 * (incident 31). A worker whose answer does not come leaves the sandbox `pausing`, to be asked again; one that is not here,
 * to whichever replica it is with. Never throws.
 */
export async function abortPause(
  parts: ControlParts,
  pausing: SandboxRecord,
  why: ChangeReason,
): Promise<void> {
  try {
    const worker = parts.workers.find(pausing.execution.identity.placement.workerId);
    const claim = worker === undefined ? claimGivenUp(parts) : newClaim(parts);
    const recorded = await parts.sandboxes.change({ on: pausing, change: { kind: "take-over", claim }, why });
    if (recorded.kind === "won" && worker !== undefined) await thaw(parts, recorded.record, { worker, why });
  } catch (error) {
    leave(parts, pausing.sandboxId, "abort pause", error);
  }
}

async function thaw(
  parts: ControlParts,
  recorded: SandboxRecord,
  { worker, why }: { readonly worker: WorkerHandle; readonly why: ChangeReason },
): Promise<void> {
  try {
    await worker.control.abortPause(recorded.execution.identity);
  } catch (error) {
    if (isUnknown(error)) throw error;
    await loseSandbox(parts, recorded, `abort of a pause: ${codeOf(error)}`);
    return;
  }
  await parts.sandboxes.change({ on: recorded, change: { kind: "abort-pause" }, why });
}

/** Killed, whose own order retires; or another replica has taken over and lets it run on. */
export async function whyNotCommitted(
  parts: ControlParts,
  { sandboxId }: SandboxRecord,
): Promise<SpaceError> {
  const latest = await parts.sandboxes.read(sandboxId);
  const isOver = latest === undefined || latest.state === "killing" || latest.state === "killed";
  return isOver ? notFound(sandboxId) : takenOver(parts.limits.claimMs);
}
