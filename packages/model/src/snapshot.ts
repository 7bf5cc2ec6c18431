// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity, SubstrateName } from "./identity.ts";
import type { Digest } from "./ids.ts";

/** One piece of a snapshot, in order. `digest` is of the plain bytes. */
export interface Chunk {
  readonly digest: Digest;
  readonly sizeBytes: number;
}

/** What a snapshot keeps of memory: nothing, or a frozen process that only its own worker can thaw. */
export type MemoryKept = "none" | "frozen-on-worker";

/** What a snapshot holds. Signed by the execution's own key, countersigned by the control plane. */
export interface SnapshotManifest {
  readonly version: 1;
  readonly identity: ExecutionIdentity;
  readonly certificate: Digest;
  readonly previousManifest: Digest | null;
  readonly substrate: SubstrateName;
  readonly memory: MemoryKept;
  /** The filesystem layer: an archive cut into chunks. */
  readonly filesystem: readonly Chunk[];
  readonly createdAtSeconds: number;
}
