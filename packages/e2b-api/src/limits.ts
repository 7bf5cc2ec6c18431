// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What one request may ask for. Each is a bound on work done for an untrusted caller. */
export interface ApiLimits {
  /** A larger body is answered with 413. */
  readonly bodyBytes: number;
  /** Of a body that is refused or not wanted, so much is read and dropped before the connection is cut. */
  readonly drainBytes: number;
  /** How long a body may take to arrive. */
  readonly bodyMs: number;
  /** How long an operation may take before the caller hears 503. */
  readonly operationMs: number;
  /** The longest life that can be asked for. */
  readonly timeoutSeconds: number;
  readonly metadataEntries: number;
  readonly metadataBytes: number;
  readonly variableEntries: number;
  readonly variableBytes: number;
  /** How many sandboxes the unpaged list of E2B's first version returns at most. */
  readonly unpagedList: number;
}

export const defaultLimits: ApiLimits = Object.freeze({
  bodyBytes: 1 << 20,
  drainBytes: 4 << 20,
  bodyMs: 15_000,
  operationMs: 150_000,
  timeoutSeconds: 24 * 3600,
  metadataEntries: 256,
  metadataBytes: 64 << 10,
  variableEntries: 1024,
  variableBytes: 256 << 10,
  unpagedList: 1000,
});

/** One string of a process's environment cannot be longer on Linux (MAX_ARG_STRLEN, with `=` and the final NUL). */
export const variableLengthLimit = 131_070;
export const templateLengthLimit = 256;
export const idempotencyKeyLimit = 128;
/** Sizes and default of a page of a list. */
export const pageLimit = 100;
/** Children of one fork. */
export const forkLimit = 100;
/** `POST /sandboxes/{id}/refreshes` extends by no more than E2B allows. */
export const refreshLimitSeconds = 3600;

/** What a caller that names no time-out gets: E2B's second version, and its first. */
export const defaultTimeoutSeconds = { v1: 15, v2: 300 } as const;
