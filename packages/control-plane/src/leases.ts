// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditFields,
  type AuditSink,
  type BootClock,
  type LeaseAnswer,
  type LeaseRequest,
  leaseMarginMs,
  longestLeaseSeconds,
  type ReceiverRecord,
  type ReceiverStore,
  type WorkerId,
} from "@space/model";
import type { SandboxReads } from "./audited-sandboxes.ts";
import type { ControlLimits } from "./limits.ts";
import type { ReceiverFeeds } from "./receiver-feeds.ts";
import type { Signer } from "./signer.ts";
import { within } from "./transitions.ts";

export interface LeasePorts {
  readonly receivers: ReceiverStore;
  readonly sandboxes: SandboxReads;
  readonly feeds: ReceiverFeeds;
  readonly signer: Signer;
  readonly clock: BootClock;
  readonly audit: AuditSink;
  readonly limits: ControlLimits;
}

/**
 * the leases that were granted, and so until when each worker may still serve. Every moment is of the boot-time
 * clock of this process's host, and on the safe side: a grant counts from no earlier than the arrival of its request, which was sent before.
 */
export class Leases {
  readonly #ports: LeasePorts;
  readonly #endMs = new Map<WorkerId, number>();
  /** The same ends on the clock that stands still while this host sleeps. */
  readonly #awakeEndMs = new Map<WorkerId, number>();
  /** The grant of each that was seen last, as it is stored. */
  readonly #seen = new Map<WorkerId, string>();

  private constructor(ports: LeasePorts) {
    this.#ports = ports;
  }

  /**
   * Assumes that every lease was granted at this instant: nobody knows what was granted last before this process. A
   * worker that holds something and was never granted any is taken for one with the longest. Throws `store/failed`.
   */
  static async open(ports: LeasePorts): Promise<Leases> {
    const leases = new Leases(ports);
    const terms = new Map<WorkerId, number>();
    for (const workerId of (await ports.sandboxes.load()).keys())
      terms.set(workerId, longestLeaseSeconds * 1000);
    for (const { workerId, lease } of await ports.receivers.receivers()) {
      if (lease === null) continue;
      terms.set(workerId, lease.termMs);
      leases.#seen.set(workerId, nameOf(lease));
    }
    for (const [workerId, termMs] of terms) leases.#note(workerId, ports.clock.bootMs(), termMs);
    return leases;
  }

  /**
   * takes note of what other replicas have granted since the last look; each counts from this instant, which is no
   * earlier than its own. Whoever has written a retirement before sees every lease that was granted in spite of it.
   * Throws `store/failed`.
   */
  async refresh(): Promise<void> {
    const { receivers, clock } = this.#ports;
    for (const { workerId, lease } of await receivers.receivers()) {
      if (lease === null || this.#seen.get(workerId) === nameOf(lease)) continue;
      this.#seen.set(workerId, nameOf(lease));
      this.#note(workerId, clock.bootMs(), lease.termMs);
    }
  }

  /** For how long a worker's last lease has been over for certain, the clocks' drift included; negative while it may be valid. */
  overForMs(workerId: WorkerId): number {
    const endMs = this.#endMs.get(workerId);
    if (endMs === undefined) return Number.POSITIVE_INFINITY; // it was never allowed to serve
    return this.#ports.clock.bootMs() - (endMs + leaseMarginMs);
  }

  /**
   * The same without the time that this host slept through, when nobody could renew (incident 15). It tells when to give
   * up what ran there, never whether a successor may start.
   */
  overWhileAwakeForMs(workerId: WorkerId): number {
    const endMs = this.#awakeEndMs.get(workerId);
    if (endMs === undefined) return Number.POSITIVE_INFINITY;
    return this.#ports.clock.monotonicMs() - (endMs + leaseMarginMs);
  }

  /** whether a successor of what ran there may be started elsewhere, whatever that worker has heard. */
  isOver(workerId: WorkerId): boolean {
    return this.overForMs(workerId) >= 0;
  }

  /** who may still serve, and so must have acknowledged a key before it signs. */
  leased(): readonly WorkerId[] {
    return [...this.#endMs.keys()].filter((workerId) => !this.isOver(workerId));
  }

  /**
   * Answers a request that arrived just now. The grant is told on the feed before this resolves. Withheld while a
   * retirement or the keys of version `owedBundle` (asked for at the last moment) are unacknowledged. Throws `store/failed`, or what the worker answers to the grant.
   */
  async renew(workerId: WorkerId, request: LeaseRequest, owedBundle: () => number): Promise<LeaseAnswer> {
    const { clock, feeds, receivers, limits, signer, audit } = this.#ports;
    const arrivedMs = clock.bootMs();
    const isSettled = await within(clock, limits.leaseWaitMs, feeds.settled(workerId));
    const withheld = (): LeaseAnswer => {
      audit.record("lease/withheld", { workerId });
      return { kind: "withheld", retryMs: limits.leaseRetryMs };
    };
    if (isSettled !== true || feeds.acknowledged(workerId).bundleVersion < owedBundle()) return withheld();
    const termMs = limits.leaseMs;
    const reason = this.#reasonFor(workerId);
    // Before it is durable: whoever looks meanwhile must see the later end.
    this.#note(workerId, arrivedMs, termMs);
    const stored = await receivers.recordLease(workerId, { grantedAtMs: clock.wallMs(), termMs });
    if (stored === undefined) return withheld(); // a retirement was written since, perhaps by another replica
    // it may stand in the place of one that another replica granted since this request came, which was before now.
    this.#note(workerId, clock.bootMs(), stored.termMs);
    this.#seen.set(workerId, nameOf(stored));
    const grant = signer.lease(
      {
        workerId,
        nonce: request.nonce,
        termSeconds: termMs / 1000,
        position: feeds.acknowledged(workerId).position,
      },
      reason,
    );
    await feeds.tell(workerId, { kind: "lease", grant });
    return { kind: "granted" };
  }

  /** A lease that counts from this moment; a shorter one takes nothing back. */
  #note(workerId: WorkerId, fromBootMs: number, termMs: number): void {
    const later = (held: number | undefined, endMs: number): number => Math.max(held ?? 0, endMs);
    this.#endMs.set(workerId, later(this.#endMs.get(workerId), fromBootMs + termMs));
    const awakeEndMs = this.#ports.clock.monotonicMs() + termMs;
    this.#awakeEndMs.set(workerId, later(this.#awakeEndMs.get(workerId), awakeEndMs));
  }

  #reasonFor(workerId: WorkerId): AuditFields["lease/granted"]["reason"] {
    if (!this.#endMs.has(workerId)) return "none before";
    return this.isOver(workerId) ? "the last had run out" : "renewed";
  }
}

function nameOf({ grantedAtMs, termMs }: NonNullable<ReceiverRecord["lease"]>): string {
  return `${grantedAtMs} ${termMs}`;
}
