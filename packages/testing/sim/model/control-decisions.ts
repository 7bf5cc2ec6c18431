// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What the control plane's own code decides of leases and predecessors, asked once for every case that there is.

import { awaitPredecessors } from "@space/control-plane/await-predecessors";
import { type LeasePorts, Leases } from "@space/control-plane/leases";
import {
  type BootClock,
  isSpaceError,
  leaseMarginMs,
  type PendingSideEffect,
  type SandboxRecord,
  type WorkerId,
} from "@space/model";
import { identityOf } from "./identities.ts";

/** What a generation still owes when a successor is to start: nothing, or a retirement that its worker has not acknowledged. */
export interface Predecessor {
  readonly generation: number;
  readonly worker: number;
}

type ControlParts = Parameters<typeof awaitPredecessors>[0];

const bootMs = 1_000_000;
const leaseMs = 60_000;
const workerIdOf = (worker: number): WorkerId => identityOf({ generation: 1, worker }).placement.workerId;

/** whether a successor may be claimed on that worker now. No answer comes while it is waited for one. */
export async function mayFollow(
  pending: readonly Predecessor[],
  successorOn: number,
  isOver: readonly boolean[],
): Promise<boolean> {
  const orders = pending.map(orderOf);
  const over = new Set(isOver.flatMap((is, worker) => (is ? [workerIdOf(worker)] : [])));
  const parts = {
    sandboxes: { pending: async () => orders },
    feeds: { deliver: async () => false },
    leases: {
      refresh: async () => undefined,
      isOver: (workerId: WorkerId) => over.has(workerId),
      overForMs: () => -1,
    },
    clock: { after: () => () => undefined },
    limits: { confirmMs: 1, leaseMs },
  } as unknown as ControlParts; // cast: all that this decision uses
  const record = { sandboxId: identityOf({ generation: 1, worker: 0 }).sandboxId } as SandboxRecord; // cast: likewise
  try {
    await awaitPredecessors(parts, record, workerIdOf(successorOn));
    return true;
  } catch (error) {
    if (isSpaceError(error, "worker/unfenced")) return false;
    throw error;
  }
}

function orderOf(place: Predecessor): PendingSideEffect {
  const effect = { kind: "retire", identity: identityOf(place), keepFrozen: null } as const;
  return { id: place.generation, effect, attempts: 0, notBeforeMs: 0 };
}

/** What the control plane's leases do, at their edges. */
export interface LeaseDecisions {
  /** whether a lease is granted while a retirement is unacknowledged, and while none is. */
  readonly grantsOwing: boolean;
  readonly grants: boolean;
  /** Whether it counts a lease as over at the last instant at which the worker can hold it, the clocks' drift included. */
  readonly isOverWhileHeld: boolean;
  /** Whether it counts one as over after that. */
  readonly isOverAfter: boolean;
  /** Whether it counts one as over at once when it has started again. */
  readonly isOverAtStart: boolean;
}

export async function leaseDecisions(): Promise<LeaseDecisions> {
  const { isOver } = await renewal(false);
  // The worker counts its term from an earlier moment: at the latest from the arrival of its request.
  return {
    grantsOwing: (await renewal(true)).isGranted,
    grants: (await renewal(false)).isGranted,
    isOverWhileHeld: isOver(leaseMs + leaseMarginMs - 1),
    isOverAfter: isOver(leaseMs + leaseMarginMs),
    isOverAtStart: await isOverAtStart(),
  };
}

/** One request of a worker that owes an acknowledgement, or owes nothing. */
async function renewal(
  owes: boolean,
): Promise<{ readonly isGranted: boolean; readonly isOver: (afterMs: number) => boolean }> {
  const clock = { nowMs: bootMs };
  const leases = await Leases.open(leasePorts(clock, { owes, wasGranted: false }));
  const request = { nonce: "nonce", records: identityDigest };
  const answer = await leases.renew(workerIdOf(0), request, () => 0);
  return {
    isGranted: answer.kind === "granted",
    isOver: (afterMs) => {
      clock.nowMs = bootMs + afterMs;
      return leases.isOver(workerIdOf(0));
    },
  };
}

async function isOverAtStart(): Promise<boolean> {
  const ports = leasePorts({ nowMs: bootMs }, { owes: false, wasGranted: true });
  return (await Leases.open(ports)).isOver(workerIdOf(0));
}

type LeaseRequest = Parameters<Leases["renew"]>[1];
const identityDigest = "records" as LeaseRequest["records"]; // cast: nothing here compares it

/** All of the host's clocks show the same moment, and no timer goes off. */
function stoodClock(clock: { readonly nowMs: number }): BootClock {
  const now = (): number => clock.nowMs;
  return { bootMs: now, wallMs: now, monotonicMs: now, after: () => () => undefined };
}

function leasePorts(
  clock: { readonly nowMs: number },
  { owes, wasGranted }: { readonly owes: boolean; readonly wasGranted: boolean },
): LeasePorts {
  const receiver = {
    workerId: workerIdOf(0),
    position: 0,
    bundleVersion: 0,
    lease: { grantedAtMs: 0, termMs: leaseMs },
  };
  return {
    receivers: {
      receivers: async () => (wasGranted ? [receiver] : []),
      // The store refuses while an order is pending, too: its contract's, and left out, so that this code stands alone.
      recordLease: async (_: WorkerId, lease: unknown) => lease,
    },
    sandboxes: { load: async () => new Map() },
    feeds: {
      settled: async () => !owes,
      acknowledged: () => ({ position: 0, bundleVersion: 0 }),
      tell: async () => undefined,
    },
    signer: { lease: () => "grant" },
    clock: stoodClock(clock),
    audit: { record: () => undefined },
    limits: { leaseMs, leaseWaitMs: 1, leaseRetryMs: 1 },
  } as unknown as LeasePorts; // cast: all that these decisions use
}
