// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord, WorkerId } from "@space/model";
import { abortPause } from "./abort-pause.ts";
import { finishKill } from "./kill-sandbox.ts";
import { type ControlParts, isForfeit, leave } from "./parts.ts";
import { takeOverStart } from "./take-over-start.ts";

const interrupted = "interrupted";

/** What an earlier run of this replica left in between, and claims that ran out: before anything is served. */
export async function recoverAll(parts: ControlParts): Promise<void> {
  const records = await parts.sandboxes.live();
  for (const record of records) {
    const { claim } = record;
    if (claim !== null && claim.owner !== parts.owner && isForfeit(parts, claim))
      await recoverSandbox(parts, record);
  }
}

/** what another replica was driving on a worker that has left it and is here now. */
export async function recoverOn(parts: ControlParts, workerId: WorkerId): Promise<void> {
  for (const record of await parts.sandboxes.onWorker(workerId)) {
    const { claim, execution } = record;
    const isHere = execution.state !== "ended" && execution.identity.placement.workerId === workerId;
    if (claim !== null && claim.owner !== parts.owner && isHere) await recoverSandbox(parts, record);
  }
}

/** One round: what was left half-way here, and claims that ran out anywhere. */
export async function recoverAbandoned(parts: ControlParts): Promise<void> {
  const { sandboxes, transitions, clock, limits } = parts;
  for (const sandboxId of transitions.takeLeft()) {
    try {
      const record = await sandboxes.read(sandboxId);
      if (record !== undefined) await recoverSandbox(parts, record);
    } catch (error) {
      leave(parts, sandboxId, "recover", error);
    }
  }
  for (const record of await sandboxes.abandoned(clock.wallMs(), limits.batch)) {
    await recoverSandbox(parts, record);
  }
}

/**
 * Drives a transition that nobody drives any more to a truthful state: a start is taken over or given up, a pause that was
 * not committed is aborted, a kill is finished. What a start or a kill owes its worker is in the outbox.
 */
export async function recoverSandbox(parts: ControlParts, record: SandboxRecord): Promise<void> {
  const { sandboxId, state } = record;
  if (parts.transitions.current(sandboxId) !== undefined) return;
  switch (state) {
    case "creating":
    case "resuming":
      return takeOverStart(parts, record);
    case "pausing":
      return parts.transitions.run(sandboxId, "recover", () => abortPause(parts, record, interrupted));
    case "killing":
      return parts.transitions.run(sandboxId, "recover", () => finishKill(parts, record, interrupted));
    case "running":
    case "paused":
    case "killed":
    case "failed":
    case "lost":
      return;
  }
}
