// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  compareIdentity,
  type Digest,
  type ExecutionIdentity,
  type SandboxId,
  type SandboxRecord,
  type SideEffect,
  sameRoute,
  type WorkerHandle,
  type WorkerInventory,
} from "@space/model";
import { loseSandbox } from "./lose-sandbox.ts";
import type { ControlParts } from "./parts.ts";
import { recoverSandbox } from "./recovery.ts";

export interface Reconciling {
  readonly worker: WorkerHandle;
  /** What the worker said that it holds. */
  readonly inventory: WorkerInventory;
  /** What the store said that it holds, read before the worker could be given anything new. */
  readonly believed: readonly SandboxRecord[];
}

/**
 * Makes both sides agree on what a worker holds. What it should have and has not is lost; what it has and should not is
 * retired again or discarded. Each step is a conditional write or a repeatable order. Returns what it found.
 */
export async function reconcileWorker(
  parts: ControlParts,
  reconciling: Reconciling,
): Promise<{ readonly lost: number; readonly ended: number }> {
  const { believed, inventory } = reconciling;
  let lost = 0;
  for (const record of believed) {
    if (await settleBelieved(parts, record, reconciling)) lost += 1;
  }
  let ended = 0;
  for (const identity of inventory.installed) {
    if (await endUnwanted(parts, reconciling.worker, identity)) ended += 1;
  }
  for (const frozen of inventory.frozen) {
    if (await endForgotten(parts, reconciling.worker, frozen)) ended += 1;
  }
  return { lost, ended };
}

/**
 * What the worker said is held against what was certified before it spoke, and written on what is stored now. Whether
 * the sandbox is lost.
 */
async function settleBelieved(
  parts: ControlParts,
  { sandboxId, execution }: SandboxRecord,
  reconciling: Reconciling,
): Promise<boolean> {
  const { workerId } = reconciling.worker;
  const isInstalled = reconciling.inventory.installed.some((identity) =>
    isSame(identity, execution.identity),
  );
  for (;;) {
    const record = await parts.sandboxes.read(sandboxId);
    if (record === undefined || !isSame(record.execution.identity, execution.identity)) return false;
    if (parts.transitions.current(sandboxId) !== undefined) return false; // its driver finds out
    const wasHere = execution.state === "active" && execution.identity.placement.workerId === workerId;
    const isOpen = record.state === "running" || record.state === "pausing";
    if (wasHere && isOpen && isInstalled) {
      await recoverSandbox(parts, record); // a pause that nobody drives
      return false;
    }
    if (wasHere && isOpen) {
      if (await loseSandbox(parts, record, "its worker no longer has it")) return true;
    } else if (isInstalled || (await settleFrozen(parts, record, reconciling))) {
      return false; // what is still installed may be about to be kept, by an order that is on its way
    }
  }
}

/** Whether the row says the truth about frozen processes on this worker. */
async function settleFrozen(
  parts: ControlParts,
  record: SandboxRecord,
  { worker, inventory }: Reconciling,
): Promise<boolean> {
  const { sandboxId, snapshot, state } = record;
  if (state !== "paused" || snapshot?.frozenOn !== worker.workerId) return true;
  const isKept = inventory.frozen.some(
    (frozen) => frozen.sandboxId === sandboxId && frozen.manifest === snapshot.digest,
  );
  if (isKept) return true;
  const outcome = await parts.sandboxes.change({
    on: record,
    change: { kind: "forget-frozen" },
    why: "its worker no longer has it",
  });
  return outcome.kind === "won";
}

function isSame(a: ExecutionIdentity, b: ExecutionIdentity): boolean {
  return compareIdentity(a, b) === "identical";
}

function isSameProcess(installed: ExecutionIdentity, { execution: { identity } }: SandboxRecord): boolean {
  return sameRoute(installed, identity) && installed.activation.id === identity.activation.id;
}

/** Whether the worker had an execution that must not go on. */
async function endUnwanted(
  parts: ControlParts,
  worker: WorkerHandle,
  identity: ExecutionIdentity,
): Promise<boolean> {
  const record = await parts.sandboxes.read(identity.sandboxId);
  // what is driven as a later attempt is the same process.
  if (record !== undefined && record.execution.state !== "ended" && isSameProcess(identity, record))
    return false;
  const isNewest = record !== undefined && isSame(identity, record.execution.identity);
  const isFrozen = isNewest && record.state === "paused" && record.snapshot?.frozenOn === worker.workerId;
  const keepFrozen = isFrozen ? (record.snapshot?.digest ?? null) : null;
  await order(parts, worker, record, { kind: "retire", identity, keepFrozen });
  return true;
}

async function endForgotten(
  parts: ControlParts,
  worker: WorkerHandle,
  { sandboxId, manifest }: { readonly sandboxId: SandboxId; readonly manifest: Digest },
): Promise<boolean> {
  const { workerId } = worker;
  const record = await parts.sandboxes.read(sandboxId);
  const isDead = record === undefined || record.state === "killed" || record.state === "failed";
  const isWanted = record?.snapshot?.frozenOn === workerId && record.snapshot.digest === manifest;
  if (!isDead && isWanted) return false;
  await order(parts, worker, record, { kind: "discard", sandboxId, workerId, manifest });
  return true;
}

/** Of a sandbox that the store does not know there is no row to write the order to: it is given at every hello. */
async function order(
  parts: ControlParts,
  { workerId }: WorkerHandle,
  record: SandboxRecord | undefined,
  effect: SideEffect,
): Promise<void> {
  if (record !== undefined) {
    await parts.feeds.enqueue([effect]); // replaces one that is on its way
    return;
  }
  await parts.feeds.tell(
    workerId,
    effect.kind === "retire"
      ? {
          kind: "retire",
          retirement: parts.signer.retirement(effect.identity, "unknown sandbox"),
          keepFrozen: null,
        }
      : { kind: "discard", sandboxId: effect.sandboxId, manifest: effect.manifest },
  );
}
