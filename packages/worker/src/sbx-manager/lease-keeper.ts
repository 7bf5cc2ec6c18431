// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type TrustedKeys, verifyLease } from "@space/capability";
import {
  type AuditSink,
  type BootClock,
  type Digest,
  fencedLimitMs,
  type LeaseAnswer,
  leaseNonceBytes,
  type Random,
  SpaceError,
  type WorkerId,
  type WorkerPresence,
} from "@space/model";

/** Who else holds the deadline: what a daemon that stands still cannot fence, they do. */
export interface LeaseHolder {
  /**
   * Serves until then, on the host's boot-time clock; goes on at once where it was fenced. Where it rejects, the lease is
   * not taken: what it holds is fenced at the earlier moment.
   */
  holdUntil(deadlineBootMs: number): Promise<void>;
}

export interface LeaseKeeperPorts {
  readonly workerId: WorkerId;
  readonly clock: BootClock;
  readonly random: Random;
  readonly audit: AuditSink;
  readonly keys: TrustedKeys;
  readonly holders: readonly LeaseHolder[];
  /** Pause before a request that had no answer is made again. */
  readonly retryMs: number;
  readonly recordsDigest: () => Digest;
  /** The lease is back: what was held goes on. */
  readonly onRenewed: () => void;
  /** Without a lease for so long that what is held must end. */
  readonly onGivenUp: () => void;
}

/** A timer stands still while the host sleeps: none waits for longer than this, so that it is soon known after it. */
const longestWaitMs = 5_000;

/**
 * this worker's lease. It asks a third of the term after it asked last, and counts from the moment at which it
 * asked, on a clock that runs on while the host sleeps. {@link held} is compared with that clock at every look, so that a
 * process which stood still knows it before it does anything; and asks at once for what it has slept through.
 */
export class LeaseKeeper {
  readonly #ports: LeaseKeeperPorts;
  #deadlineMs = 0;
  #asked: { readonly nonce: string; readonly sentMs: number } | undefined;
  #presence: Pick<WorkerPresence, "renew"> | undefined;
  #isFenced = true;
  #span = 0;
  /** When it is to ask, on the boot-time clock. */
  #askAtMs = Number.POSITIVE_INFINITY;
  #cancelAsk: () => void = () => undefined;
  #cancelEnd: () => void = () => undefined;

  constructor(ports: LeaseKeeperPorts) {
    this.#ports = ports;
  }

  /** whether this worker may serve at this instant. Who is first to find that it may not has the lease asked for. */
  get held(): boolean {
    const isHeld = this.#ports.clock.bootMs() < this.#deadlineMs;
    if (!isHeld) this.#askIfDue();
    return isHeld;
  }

  /** Throws `worker/fenced` without a lease. */
  require(): void {
    if (!this.held) throw new SpaceError("worker/fenced", { workerId: this.#ports.workerId });
  }

  /** Changes whenever there was an instant without a lease. */
  get span(): number {
    return this.#span + (this.held ? 0 : 1);
  }

  /** Throws `worker/fenced` unless the lease was held without a gap since `span` was read, and is. */
  requireSince(span: number): void {
    if (!this.held || span !== this.span)
      throw new SpaceError("worker/fenced", { workerId: this.#ports.workerId });
  }

  get deadlineBootMs(): number {
    return this.#deadlineMs;
  }

  /** From now on asks over this presence; undefined: over none, and the lease runs out. */
  use(presence: Pick<WorkerPresence, "renew"> | undefined): void {
    this.#presence = presence;
    this.#asked = undefined;
    this.#cancelAsk();
    if (presence !== undefined) void this.#ask(presence);
  }

  /** A grant that was told. Throws `lease/refused` when it is not this worker's, or not of the last request. */
  async take(token: string): Promise<void> {
    const { workerId, keys, holders, audit } = this.#ports;
    const grant = verifyLease(token, keys.ring);
    const asked = this.#asked;
    if (grant.workerId !== workerId) throw refused("another worker's");
    if (asked === undefined || grant.nonce !== asked.nonce) throw refused("of another request");
    const deadlineMs = asked.sentMs + grant.termSeconds * 1000;
    if (deadlineMs <= this.#deadlineMs) throw refused("ends before the present one");
    this.#asked = undefined;
    // A guest that a holder fenced is thawed here, so a pause that was under way must know that there was a gap.
    if (!this.held) {
      this.#span += 1;
      this.#fence();
    }
    await Promise.all(holders.map((holder) => holder.holdUntil(deadlineMs)));
    if (!this.held) this.#span += 1;
    this.#deadlineMs = Math.max(this.#deadlineMs, deadlineMs);
    this.#watchEnd();
    this.#askAfter(asked.sentMs + (grant.termSeconds * 1000) / 3 - this.#ports.clock.bootMs());
    audit.record("lease/taken", { workerId, position: grant.position, fenced: this.#isFenced });
    if (this.#isFenced && this.held) {
      this.#isFenced = false;
      this.#ports.onRenewed();
    }
  }

  close(): void {
    this.use(undefined);
    this.#cancelEnd();
  }

  async #ask(presence: Pick<WorkerPresence, "renew">): Promise<void> {
    const { clock, random, recordsDigest, retryMs } = this.#ports;
    this.#cancelAsk();
    this.#askAtMs = Number.POSITIVE_INFINITY;
    const nonce = Buffer.from(random.bytes(leaseNonceBytes)).toString("base64url");
    // The moment before it is sent, however long it takes to leave: never later than what the control plane counts from.
    this.#asked = { nonce, sentMs: clock.bootMs() };
    const answer = await presence.renew({ nonce, records: recordsDigest() }).catch(() => undefined);
    if (this.#presence !== presence || answer?.kind === "granted") return;
    this.#askAfter(waitFor(answer) ?? retryMs);
  }

  #askAfter(delayMs: number): void {
    if (this.#presence === undefined) return;
    this.#askAtMs = this.#ports.clock.bootMs() + Math.max(0, delayMs);
    this.#waitToAsk();
  }

  #waitToAsk(): void {
    const { clock } = this.#ports;
    const leftMs = this.#askAtMs - clock.bootMs();
    this.#cancelAsk();
    this.#cancelAsk = clock.after(Math.max(0, Math.min(leftMs, longestWaitMs)), () => {
      if (!this.#askIfDue()) this.#waitToAsk();
    });
  }

  /** Whether it was time, also when no timer has said so: none fires for the time that the host slept. */
  #askIfDue(): boolean {
    const presence = this.#presence;
    if (presence === undefined || this.#ports.clock.bootMs() < this.#askAtMs - 1) return false;
    void this.#ask(presence);
    return true;
  }

  #watchEnd(): void {
    const { clock } = this.#ports;
    this.#cancelEnd();
    this.#cancelEnd = clock.after(this.#deadlineMs - clock.bootMs(), () => this.#end());
  }

  #end(): void {
    if (this.held) return this.#watchEnd();
    this.#fence();
  }

  /** There was an instant without a lease, whoever was first to know. */
  #fence(): void {
    const { clock, audit, workerId, onGivenUp } = this.#ports;
    if (this.#isFenced) return;
    this.#isFenced = true;
    audit.record("lease/ended", { workerId });
    this.#cancelEnd();
    const leftMs = this.#deadlineMs + fencedLimitMs - clock.bootMs();
    if (leftMs <= 0) onGivenUp();
    else this.#cancelEnd = clock.after(leftMs, onGivenUp);
  }
}

function waitFor(answer: LeaseAnswer | undefined): number | undefined {
  return answer?.kind === "withheld" ? answer.retryMs : undefined;
}

function refused(problem: string): SpaceError {
  return new SpaceError("lease/refused", { problem });
}
