// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, SandboxId, WorkerId } from "../ids.ts";

/** One thing that a receiver is told. Each is safe to repeat. */
export type FeedEntry =
  /** Lives only as long as whoever drives the start: never kept for a receiver that is away. */
  | { readonly kind: "install"; readonly certificate: string }
  /** `keepFrozen`: the processes stay frozen under that manifest's digest; otherwise they end. */
  | { readonly kind: "retire"; readonly retirement: string; readonly keepFrozen: Digest | null }
  /** Ends processes that were kept frozen under exactly this manifest (incident 1); others stay. */
  | { readonly kind: "discard"; readonly sandboxId: SandboxId; readonly manifest: Digest }
  /** a newer verification bundle. A lower version than the held one changes nothing. */
  | { readonly kind: "keys"; readonly bundle: string }
  /** the answer to a request for a lease. */
  | { readonly kind: "lease"; readonly grant: string };

export interface FeedItem {
  /** Grows along the feed of one receiver; null for what is not kept in the outbox (install, keys, lease). */
  readonly position: number | null;
  readonly entry: FeedEntry;
}

/**
 * The way from the control plane to one receiver: ordered, resumable, acknowledged. Both ends have this form: telling
 * it, and being told. Items are told in the order of the calls, without waiting for the one before; the receiver keeps
 * the order within each sandbox. `tell` resolves when the receiver has applied the item and synced it; rejects with
 * the receiver's refusal; with `link/closed` when no answer came: then it is told again over the next link, from the
 * last acknowledged on, and the receiver takes what it has had already as done.
 */
export interface ReceiverFeed {
  tell(item: FeedItem): Promise<void>;
}

/** What the control plane must not forget of a receiver. */
export interface ReceiverRecord {
  readonly workerId: WorkerId;
  /** The highest position that it has ever acknowledged: one that knows less has an older store than it had. */
  readonly position: number;
  /** the version of the bundle that it has acknowledged; 0 for none. */
  readonly bundleVersion: number;
  /** the last grant, made durable before it was answered; null: never had one. Wall clock. */
  readonly lease: { readonly grantedAtMs: number; readonly termMs: number } | null;
}

/** Durable before it resolves; may be called concurrently; throws `store/failed`. Numbers only ever grow. */
export interface ReceiverStore {
  receivers(): Promise<readonly ReceiverRecord[]>;
  /** The receiver has applied the order at this position: it is removed from the outbox, unless it was replaced since. */
  acknowledgeOrder(workerId: WorkerId, position: number): Promise<void>;
  /** */
  acknowledgeBundle(workerId: WorkerId, version: number): Promise<void>;
  /**
   * before the grant is answered. Wins only while no retirement is on its way to the worker, in the same write: so
   * whoever has written one sees every lease that may still be granted before it. Of two terms the store keeps the one
   * that ends later, and shows that there was another grant. Returns what it holds then; undefined when it has not won.
   */
  recordLease(
    workerId: WorkerId,
    lease: NonNullable<ReceiverRecord["lease"]>,
  ): Promise<NonNullable<ReceiverRecord["lease"]> | undefined>;
}
