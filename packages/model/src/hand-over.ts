// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "./identity.ts";
import type { Digest, WorkerId } from "./ids.ts";

/**
 * The control plane's word that one worker may read one snapshot's sealed chunks at the worker that made it. R-2: both are
 * named as components, never by address.
 */
export interface HandOverGrant {
  /** The retired execution that the snapshot is of: its placement names the worker that gives. */
  readonly identity: ExecutionIdentity;
  /** The committed manifest; only chunks that it lists are given. */
  readonly manifest: Digest;
  /** The worker that may ask. */
  readonly target: WorkerId;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

/** A grant is for one move that is under way: no longer than a capability lives. */
export const longestHandOverSeconds = 120;

/** Why a worker gave another nothing. */
export type HandOverProblem =
  | "request"
  | "form"
  | "key"
  | "signature"
  | "time"
  | "asker"
  | "giver"
  | "lease"
  | "record"
  | "snapshot"
  | "chunk"
  | "too many";

/** Why a chunk came from the object store after all. */
export type HandOverFailure =
  | "unreachable"
  | "other component"
  | "refused"
  | "not held"
  | "too slow"
  | "broken off"
  | "protocol"
  | "altered"
  | "too many";
