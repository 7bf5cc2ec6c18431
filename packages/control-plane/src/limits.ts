// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { defaultLeaseSeconds, type ExecutionLimits } from "@space/model";

/** Every bound of the control plane. Commands to workers have their own deadlines, in `wire`. */
export interface ControlLimits {
  /** Longest life that a caller may ask for. */
  readonly timeoutMs: number;
  /** What each execution of a template may use. */
  readonly execution: ExecutionLimits;
  /** Sandboxes that a new tenant may run at once. */
  readonly tenantSandboxes: number;
  /** How long a caller waits for somebody else's transition of the same sandbox. */
  readonly waitMs: number;
  /** How long a caller waits for a worker to confirm an order whose outcome is decided already. */
  readonly confirmMs: number;
  /** After this another replica may drive a transition on; longer than all of a transition's commands together. */
  readonly claimMs: number;
  /** A worker that is away longer has lost its frozen processes, as far as a resume is concerned. */
  readonly awayMs: number;
  /** how long a caller's check counts. */
  readonly authorisedMs: number;
  /** the term of a worker's lease; whole seconds, 15 to 120. */
  readonly leaseMs: number;
  /** How long a request for a lease waits for what the worker has not acknowledged yet. */
  readonly leaseWaitMs: number;
  /** When a worker whose lease was withheld asks again. */
  readonly leaseRetryMs: number;
  /** A worker that does not answer a ping for so long is cut off. */
  readonly silenceMs: number;
  readonly reaperTickMs: number;
  readonly orderTickMs: number;
  /** How often it is looked whether a worker's lease has run out. */
  readonly leaseTickMs: number;
  readonly recoveryTickMs: number;
  readonly purgeTickMs: number;
  /** How often what no snapshot needs is looked for. It is gone after two or three times that, when the pauses of then are over. */
  readonly collectTickMs: number;
  /** Sandboxes of one tick, of each kind of upkeep. */
  readonly batch: number;
  /** Reaped at once, and paused at once when the control plane stops. */
  readonly atOnce: number;
  /** First and longest pause before an order, or the pause of an expired sandbox, is tried again. */
  readonly retryFirstMs: number;
  readonly retryLongestMs: number;
  readonly keyTickMs: number;
  /** how long a signing key is trusted after it has signed last; at least 150 s. */
  readonly keyOverlapMs: number;
  /** A signing key of this age is rotated. */
  readonly keyMaxAgeMs: number;
  /** How often it is said that the root key is missed. */
  readonly keyReminderMs: number;
  /** How long the row of a dead sandbox is kept. */
  readonly tombstoneMs: number;
}

const mebibyte = 1024 * 1024;

export const defaultControlLimits: ControlLimits = {
  timeoutMs: 24 * 3_600_000,
  execution: { memoryBytes: 1024 * mebibyte, cpus: 2, processes: 1024, diskBytes: 4096 * mebibyte },
  tenantSandboxes: 1000,
  waitMs: 60_000,
  confirmMs: 10_000,
  claimMs: 900_000,
  awayMs: 60_000,
  authorisedMs: 60_000,
  leaseMs: defaultLeaseSeconds * 1000,
  leaseWaitMs: 5000,
  leaseRetryMs: 500,
  silenceMs: 15_000,
  reaperTickMs: 250,
  orderTickMs: 1000,
  leaseTickMs: 1000,
  recoveryTickMs: 2000,
  purgeTickMs: 60_000,
  collectTickMs: 600_000,
  batch: 200,
  atOnce: 16,
  retryFirstMs: 1000,
  retryLongestMs: 60_000,
  keyTickMs: 1000,
  keyOverlapMs: 180_000,
  keyMaxAgeMs: 24 * 3_600_000,
  keyReminderMs: 3_600_000,
  tombstoneMs: 24 * 3_600_000,
};
