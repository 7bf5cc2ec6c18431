// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChangeReason, SandboxRecord } from "@space/model";
import { codeOf, isUnknown } from "./failures.ts";
import { loseSandbox } from "./lose-sandbox.ts";
import { type ControlParts, leave, newClaim } from "./parts.ts";

/**
 * Ends a pause that is not to be committed: first the abort is recorded, so that no commit on the older revision can win
 * any more; then the guest really runs again, or is lost, and the state says which (incident 31). A worker whose answer
 * does not come leaves the sandbox `pausing`, to be asked again. Never throws.
 */
export async function abortPause(
  parts: ControlParts,
  pausing: SandboxRecord,
  why: ChangeReason,
): Promise<void> {
  try {
    const claim = newClaim(parts);
    const recorded = await parts.sandboxes.change({ on: pausing, change: { kind: "take-over", claim }, why });
    if (recorded.kind === "won") await thaw(parts, recorded.record, why);
  } catch (error) {
    leave(parts, pausing.sandboxId, "abort pause", error);
  }
}

async function thaw(parts: ControlParts, recorded: SandboxRecord, why: ChangeReason): Promise<void> {
  const { identity } = recorded.execution;
  const worker = parts.workers.find(identity.placement.workerId);
  if (worker === undefined) {
    parts.transitions.leave(recorded.sandboxId); // nobody knows better: asked when it says hello
    return;
  }
  try {
    await worker.control.abortPause(identity);
  } catch (error) {
    if (isUnknown(error)) throw error;
    await loseSandbox(parts, recorded, `abort of a pause: ${codeOf(error)}`);
    return;
  }
  await parts.sandboxes.change({ on: recorded, change: { kind: "abort-pause" }, why });
}
