// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "./identity.ts";
import type { Digest } from "./ids.ts";

/**
 * What a receiver knows to be true of one sandbox, from its own durable store. `Route` is what a gateway believes;
 * the two are never one type.
 */
export interface RuntimeRecord {
  /** Highest identity ever installed here. */
  readonly identity: ExecutionIdentity;
  /** `retired` is a tombstone: it stays, so that an older install cannot come back. */
  readonly state: "installed" | "retired";
  /** The certificate as received, verified at install. */
  readonly certificate: string;
  readonly certificateDigest: Digest;
  /** advanced by the install of another route or generation, by retirement and by the start of a pause. */
  readonly epoch: bigint;
  readonly hostBootId: string;
  /** Endpoint evidence as JSON, recorded at activation (see endpoint verification). */
  readonly evidence: string;
}
