// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SealedChains, TrustedKeys } from "@space/capability";
import {
  type ActivationId,
  type ActivationRecord,
  type Placement,
  type RuntimeRecord,
  type SandboxId,
  SpaceError,
  type StopReason,
  type SubstrateName,
  type WorkerId,
} from "@space/model";
import { resetReason } from "@space/wire";
import type { WorkerCounters } from "../counters.ts";
import type { WorkerLimits } from "../limits.ts";
import type { WorkerPorts } from "../ports.ts";
import type { Executions } from "./executions.ts";
import type { HandOvers } from "./hand-overs.ts";
import type { HostBridge } from "./host-bridge.ts";
import type { KeyedQueue } from "./keyed-queue.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { Reports } from "./reports.ts";

/** What the commands of one worker work with. */
export interface WorkerParts extends WorkerPorts {
  readonly workerId: WorkerId;
  readonly substrateName: SubstrateName;
  /** the pod that this worker is, on Kubernetes. */
  readonly podUid: string | undefined;
  readonly capacity: number;
  readonly limits: WorkerLimits;
  readonly counters: WorkerCounters;
  readonly keys: TrustedKeys;
  /** the chains that are sealed in snapshots, verified to the pinned root. */
  readonly sealed: SealedChains;
  readonly lease: LeaseKeeper;
  readonly executions: Executions;
  readonly streams: OpenStreams;
  /** Chunks that other workers may ask for. */
  readonly handOvers: HandOvers;
  /** Snapshots that are read from other workers now. */
  readonly reading: Set<{ close(): void }>;
  readonly bridge: HostBridge;
  readonly reports: Reports;
  readonly queue: KeyedQueue<SandboxId>;
}

/**
 * the epoch ends here, in one turn of the event loop: first durably, then for every stream. `changes` is what
 * else becomes of the record. Returns how many streams were cut. Throws `store/failed`: then nothing has changed.
 */
export function endEpoch(
  parts: WorkerParts,
  record: RuntimeRecord,
  changes: Partial<RuntimeRecord> = {},
): number {
  replaceRecord(parts, record, { ...record, ...changes, epoch: record.epoch + 1n });
  return cutStreams(parts, record.identity.sandboxId, resetReason.epochEnded);
}

/** an address, or a store that was kept, does not make this worker the pod that something was placed in. */
export function isPlacedHere(
  { workerId, substrateName, podUid }: Pick<WorkerParts, "workerId" | "substrateName" | "podUid">,
  placement: Placement,
): boolean {
  const isWorker = placement.workerId === workerId && placement.substrate === substrateName;
  return isWorker && placement.podUid === podUid;
}

/** Durable before it returns. Throws `store/failed`. */
export function replaceRecord(
  parts: WorkerParts,
  expected: RuntimeRecord | undefined,
  next: RuntimeRecord,
): void {
  if (!parts.records.replace(expected, next)) throw new SpaceError("store/failed", { step: "replace" });
}

export function cutStreams(
  parts: WorkerParts,
  sandboxId: SandboxId,
  reason: typeof resetReason.epochEnded | typeof resetReason.executionGone,
): number {
  const cut = parts.streams.cut(sandboxId, reason);
  parts.counters.cut += cut;
  return cut;
}

/** Ends every process of the activation, proved by the driver, and forgets it. Safe to repeat. */
export async function stopExecution(
  parts: WorkerParts,
  activation: ActivationRecord,
  reason: StopReason,
): Promise<void> {
  const { id } = activation.identity.activation;
  await Promise.all([parts.bridge.release(id), parts.substrate.stop(activation.startedAs)]);
  parts.executions.forget(id);
  parts.audit.record("execution/stopped", { activationId: id, reason });
}

/**
 * The process of this activation is gone, or may not be forwarded to any more. At once its streams end and nothing is
 * admitted to it; then what is left of it is cleared away and the control plane hears of it.
 */
export function loseExecution(parts: WorkerParts, activation: ActivationRecord, reason: string): void {
  const { identity } = activation;
  const { id } = identity.activation;
  parts.executions.markGone(id);
  const record = parts.records.read(identity.sandboxId);
  const wasInstalled = record?.state === "installed" && record.identity.activation.id === id;
  if (wasInstalled) cutStreams(parts, identity.sandboxId, resetReason.executionGone);
  parts.audit.record("execution/exited", { activationId: id, reason });
  if (wasInstalled) parts.reports.add({ identity: record.identity, what: "exited", reason: word(reason) });
  parts.queue
    .run(identity.sandboxId, () => stopExecution(parts, activation, "gone"))
    .catch(() => auditLeftover(parts, id)); // it stays marked as gone; the next start sweeps it
}

function auditLeftover(parts: WorkerParts, activationId: ActivationId): void {
  parts.audit.record("endpoint/refused", { activationId, problem: "could not be cleared away" });
}

/** Bounded text for a report. */
function word(reason: string): string {
  return reason.slice(0, 256);
}
