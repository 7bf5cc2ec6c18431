// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, WorkerId } from "./ids.ts";

/** what a worker asks for, and names in what it then counts: the moment at which it *sent* this. */
export interface LeaseRequest {
  /** {@link leaseNonceBytes} random bytes, base64url: the grant repeats it, so that no grant is counted from another request's moment. */
  readonly nonce: string;
  /** Digest of the worker's record set, see `recordSetDigest`: how both sides notice that they disagree. */
  readonly records: Digest;
}

/** the signed grant. A worker serves while less than `termSeconds` have passed since it sent the request. */
export interface LeaseGrant {
  readonly workerId: WorkerId;
  readonly nonce: string;
  readonly termSeconds: number;
  /** Version of the record set that it was granted over: the newest feed position that the worker had acknowledged. */
  readonly position: number;
  readonly issuedAtSeconds: number;
}

/** The grant itself comes on the feed, behind everything that the worker was told before it. */
export type LeaseAnswer =
  | { readonly kind: "granted" }
  /** a retirement or a key bundle is unacknowledged, or this receiver may not serve at all. Worth asking again after that time. */
  | { readonly kind: "withheld"; readonly retryMs: number };

export const leaseNonceBytes = 16;

/** the bounds of a lease's term, and what is waited beyond it for the drift of two clocks. */
export const shortestLeaseSeconds = 15;
export const defaultLeaseSeconds = 60;
export const longestLeaseSeconds = 120;
export const leaseMarginMs = 5000;
/** a worker that stays without a lease for so long ends the streams that it held. */
export const fencedLimitMs = 60_000;
