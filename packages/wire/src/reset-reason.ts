// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The words with which a worker resets an operation's stream. A word says who ended it, never why in detail. */
export const resetReason = {
  /** the record's epoch has ended: another route or generation, a retirement, or the start of a pause. */
  epochEnded: "epoch-ended",
  /** The execution's runtime process ended by itself. */
  executionGone: "execution-gone",
  /** the verified connection to the bridge broke: whether the operation took effect is unknown. */
  transport: "transport",
  /** One side sent what the contract does not allow. */
  protocol: "protocol",
  /** the worker stayed without a lease for longer than it holds streams. */
  leaseEnded: "lease-ended",
  /** The other side gave the operation up. */
  cancelled: "cancelled",
  /** The worker daemon is ending. */
  closing: "closing",
} as const;
export type ResetReason = (typeof resetReason)[keyof typeof resetReason];
