// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  ApiCaller,
  ChangeReason,
  PendingSideEffect,
  SandboxId,
  SandboxRecord,
  SideEffect,
} from "@space/model";
import { type ControlParts, leave, newClaim } from "./parts.ts";
import { retirementsOf } from "./retirements.ts";
import { type RunningTransition, within } from "./transitions.ts";
import { awaitTurn, ownSandbox, startWaiting } from "./turns.ts";

/**
 * Ends a sandbox in any state. It is a tombstone from the first write on, so a resume that finishes late is torn down
 * and never published. Proved by the worker's answer; one that cannot be reached is told as soon as it is back.
 * Throws `sandbox/not-found`, also when it was killed before.
 */
export async function killSandbox(
  parts: ControlParts,
  { caller, sandboxId }: { caller: ApiCaller; sandboxId: SandboxId },
): Promise<void> {
  const waiting = startWaiting(parts);
  for (let record = await ownSandbox(parts, caller, sandboxId); ; ) {
    if (await killIfStill(parts, record, "asked")) return;
    const latest = await parts.sandboxes.read(sandboxId);
    if (latest === undefined || latest.state === "killed") return; // somebody else has, meanwhile
    if (latest.state === "killing") await awaitTurn(parts, sandboxId, waiting);
    record = latest;
  }
}

/** Kills the sandbox if it still is as the record says (incident 32). Whether it was this call that did. */
export async function killIfStill(
  parts: ControlParts,
  record: SandboxRecord,
  why: ChangeReason,
): Promise<boolean> {
  if (record.state === "killing" || record.state === "killed") return false;
  const before = parts.transitions.current(record.sandboxId);
  const outcome = await parts.sandboxes.change({
    on: record,
    change: { kind: "claim-kill", claim: newClaim(parts) },
    effects: endingsOf(record),
    why,
  });
  if (outcome.kind !== "won") return false;
  const { record: claimed, effects } = outcome;
  try {
    await parts.transitions.run(record.sandboxId, "kill", () => finish(parts, { claimed, effects, before }));
  } catch (error) {
    leave(parts, record.sandboxId, "finish a kill", error);
    throw error;
  }
  return true;
}

interface Killing {
  readonly claimed: SandboxRecord;
  readonly effects: readonly PendingSideEffect[];
  /** Whoever drove the sandbox when it was killed. */
  readonly before: RunningTransition | undefined;
}

/** Repeatable: a crash in between is finished by the recovery. */
async function finish(parts: ControlParts, { claimed, effects, before }: Killing): Promise<void> {
  const { clock, limits } = parts;
  // A start that is under way finds the tombstone and tears itself down; a worker that is asked before that answers first.
  if (before !== undefined && before.kind !== "kill") await within(clock, limits.confirmMs, before.end);
  await within(clock, limits.confirmMs, parts.feeds.deliver(effects));
  await finishKill(parts, claimed, "done");
}

/** Its snapshots are needed by nothing any more: the collector removes them. Throws `store/failed`. */
export async function finishKill(
  parts: ControlParts,
  claimed: SandboxRecord,
  why: ChangeReason,
): Promise<void> {
  await parts.sandboxes.change({ on: claimed, change: { kind: "finish-kill" }, why });
}

/** What has to end at workers. A pending order to keep the processes frozen is replaced by the first of these. */
export function endingsOf({ execution, snapshot, sandboxId }: SandboxRecord): readonly SideEffect[] {
  const effects: SideEffect[] = [];
  const { identity, state } = execution;
  const frozenOn = snapshot?.frozenOn ?? null;
  if (state !== "ended" || frozenOn === identity.placement.workerId) {
    effects.push(...retirementsOf(execution));
  }
  if (snapshot !== null && frozenOn !== null) {
    effects.push({ kind: "discard", sandboxId, workerId: frozenOn, manifest: snapshot.digest });
  }
  return effects;
}
