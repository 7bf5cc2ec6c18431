// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord } from "@space/model";
import { abortPause } from "./abort-pause.ts";
import { giveUp } from "./bring-up.ts";
import { finishKill } from "./kill-sandbox.ts";
import { type ControlParts, leave } from "./parts.ts";

const interrupted = "interrupted";

/** What another process of this control plane left in between: all of it, before anything is served. */
export async function recoverAll(parts: ControlParts): Promise<void> {
  const records = await parts.sandboxes.live();
  for (const record of records) {
    if (record.claim !== null && record.claim.owner !== parts.owner) await recoverSandbox(parts, record);
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
 * Drives a transition that nobody drives any more to a truthful state: a start is given up, a pause that was not
 * committed is aborted, a kill is finished. What a start or a kill owes its worker is in the outbox.
 */
export async function recoverSandbox(parts: ControlParts, record: SandboxRecord): Promise<void> {
  const { sandboxId, state } = record;
  if (parts.transitions.current(sandboxId) !== undefined) return;
  switch (state) {
    case "creating":
    case "resuming":
      await parts.transitions.run(sandboxId, "recover", () => giveUp(parts, record, interrupted));
      return;
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
