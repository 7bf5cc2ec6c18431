// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type Clock,
  isSpaceError,
  leaseMarginMs,
  type SigningKeyRecord,
  SpaceError,
  type StoredKeyBundle,
} from "@space/model";
import type { BundleReceivers } from "./bundle-receivers.ts";
import { codeOf } from "./failures.ts";
import type { ControlLimits } from "./limits.ts";
import type { SigningKeys } from "./signing-keys.ts";

export interface RotationPorts {
  readonly keys: SigningKeys;
  readonly receivers: BundleReceivers;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly limits: ControlLimits;
}

/** 120 s of a capability's life, 15 s of tolerance at its expiry, 15 s of a signer whose clock is fast. */
export const leastOverlapMs = 150_000;

/**
 * moves signing keys through their lives, one step at a time: a key signs only once every leased receiver holds a
 * bundle with it; the one before stays trusted for the overlap; what ends is taken from gateways first, and from workers
 * once the gateways present nothing of it any more. It begins where the store says that it stopped.
 */
export class KeyRotation {
  readonly #ports: RotationPorts;
  /** On the monotonic clock, from when this process knew the key to have stopped signing: a stepped clock ends nothing early. */
  readonly #retiringSinceMs = new Map<string, number>();
  #turn: Promise<unknown> = Promise.resolve();
  /** What workers may have: while gateways still present what the newest bundle revokes, the one before. */
  #forWorkers: StoredKeyBundle;
  #withheldSinceMs: number | undefined;
  #rootMissedAtMs: number | undefined;
  #isDelivered = false;

  constructor(ports: RotationPorts) {
    if (ports.limits.keyOverlapMs < leastOverlapMs)
      throw new TypeError("R-10: the overlap is at least 150 s");
    this.#ports = ports;
    this.#forWorkers = ports.keys.bundle;
    this.#noteRetiring();
  }

  /** The newest bundle that a worker may have now. */
  get bundleForWorkers(): StoredKeyBundle {
    return this.#forWorkers;
  }

  /** The key whose turn it is next: made now unless one is announced. It signs after {@link step} has seen it acknowledged. */
  rotate(): Promise<SigningKeyRecord> {
    return this.#inTurn(async () => {
      const { keys } = this.#ports;
      const next = keys.inState("announced")[0] ?? (await keys.announce("asked"));
      await this.#step();
      return keys.record(next.kid);
    });
  }

  /**
   * Ends a key before its time. One that signs is replaced first. What is left to do when this resolves, because a
   * receiver has not confirmed yet, is done by later steps; the state says so. Throws `signing-key/unknown`,
   * `signing-key/state`, or `root-key/absent`: then it is done once the root key is there.
   */
  revoke(kid: string): Promise<SigningKeyRecord> {
    return this.#inTurn(async () => {
      const { keys } = this.#ports;
      const { state } = keys.record(kid);
      if (state === "removed" || state === "revoked")
        throw new SpaceError("signing-key/state", { kid, state });
      await keys.askRevocation(kid);
      await this.#step();
      if (this.#rootMissedAtMs !== undefined) throw new SpaceError("root-key/absent", {});
      return keys.record(kid);
    });
  }

  /** One round of whatever is due. Called again and again. Throws what the store throws. */
  step(): Promise<void> {
    return this.#inTurn(() => this.#step());
  }

  /** Whether every leased receiver holds the newest bundle, as of the last step. */
  get isDelivered(): boolean {
    return this.#isDelivered;
  }

  /** Resolves when no step is under way. */
  async idle(): Promise<void> {
    await this.#turn;
  }

  async #step(): Promise<void> {
    await this.#ports.keys.refresh();
    this.#noteRetiring();
    await this.#rotateByAge();
    await this.#announceSuccessor();
    await this.#promote();
    await this.#end();
    await this.#deliver();
  }

  async #rotateByAge(): Promise<void> {
    const { keys, clock, limits } = this.#ports;
    const [signing] = keys.inState("signing");
    const ageMs = clock.wallMs() - (signing?.signingSinceMs ?? 0);
    const isUnderWay = keys.inState("announced").length > 0;
    if (ageMs >= limits.keyMaxAgeMs && !isUnderWay) await this.#ifRootIsHere(() => keys.announce("age"));
  }

  /** One that signs and is to be revoked needs somebody who signs in its place. */
  async #announceSuccessor(): Promise<void> {
    const { keys } = this.#ports;
    const isAsked = keys.inState("signing").some(({ revokeAskedAtMs }) => revokeAskedAtMs !== null);
    const hasNext = keys.inState("announced").some(({ revokeAskedAtMs }) => revokeAskedAtMs === null);
    if (isAsked && !hasNext) await this.#ifRootIsHere(() => keys.announce("successor of a revoked key"));
  }

  /** only when every leased receiver has acknowledged a bundle that holds it. */
  async #promote(): Promise<void> {
    const { keys } = this.#ports;
    const [next] = keys.inState("announced");
    if (next === undefined || next.revokeAskedAtMs !== null) return;
    if (!(await this.#deliver()) || this.#forWorkers.version < next.announcedIn) return;
    await keys.promote(next.kid, "acknowledged");
    this.#noteRetiring();
  }

  /** Those whose overlap is over are removed; those that somebody wants gone are revoked. */
  async #end(): Promise<void> {
    const { keys, clock, limits } = this.#ports;
    for (const { kid, revokeAskedAtMs, state } of keys.inState("announced", "retiring")) {
      const sinceMs = this.#retiringSinceMs.get(kid) ?? clock.monotonicMs();
      const isOver = state === "retiring" && clock.monotonicMs() - sinceMs >= limits.keyOverlapMs;
      if (revokeAskedAtMs === null && !isOver) continue;
      await this.#ifRootIsHere(() =>
        revokeAskedAtMs === null
          ? keys.end(kid, "removed", "overlap over")
          : keys.end(kid, "revoked", "asked"),
      );
    }
  }

  /** Whether everybody holds the newest bundle. Gateways come first wherever it takes a key away. */
  async #deliver(): Promise<boolean> {
    const { keys, receivers, clock, limits } = this.#ports;
    const newest = keys.bundle;
    const gateways = await receivers.deliver("gateway", newest);
    if (newest.version !== this.#forWorkers.version) {
      this.#withheldSinceMs ??= clock.monotonicMs();
      const isLate = clock.monotonicMs() - this.#withheldSinceMs >= limits.leaseMs + leaseMarginMs;
      // A gateway that does not answer for so long has no lease: revocation does not wait for it.
      if (gateways || isLate || !this.#takesAway(newest)) {
        this.#forWorkers = newest;
        this.#withheldSinceMs = undefined;
      }
    }
    const workers = await receivers.deliver("worker", this.#forWorkers);
    this.#isDelivered = gateways && workers && this.#forWorkers.version === newest.version;
    return this.#isDelivered;
  }

  #takesAway(newest: StoredKeyBundle): boolean {
    return this.#ports.keys.records.some(
      ({ endedIn }) => endedIn !== null && endedIn > this.#forWorkers.version && endedIn <= newest.version,
    );
  }

  #noteRetiring(): void {
    const { keys, clock } = this.#ports;
    for (const { kid } of keys.inState("retiring")) {
      if (!this.#retiringSinceMs.has(kid)) this.#retiringSinceMs.set(kid, clock.monotonicMs());
    }
  }

  /** What needs the root waits for it: a root that is kept elsewhere stops no service. Said once in a while. */
  async #ifRootIsHere(work: () => Promise<unknown>): Promise<void> {
    const { clock, audit, limits } = this.#ports;
    try {
      await work();
      this.#rootMissedAtMs = undefined;
    } catch (error) {
      if (!isSpaceError(error, "root-key/absent")) throw error;
      const nowMs = clock.monotonicMs();
      if (this.#rootMissedAtMs !== undefined && nowMs - this.#rootMissedAtMs < limits.keyReminderMs) return;
      this.#rootMissedAtMs = nowMs;
      audit.record("upkeep/failed", { task: "signing keys", sandboxId: null, code: codeOf(error) });
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}
