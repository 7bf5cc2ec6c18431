// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity, SubstrateName } from "./identity.ts";
import type { Digest, TenantKeyId } from "./ids.ts";

/** One piece of a snapshot, in order. `digest` is of the plain bytes. */
export interface Chunk {
  readonly digest: Digest;
  readonly sizeBytes: number;
}

/** Most chunks of one snapshot: some 11 GiB. Its signed manifest and its plain form then fit one command. */
export const snapshotChunkLimit = 2800;

/**
 * What a snapshot keeps of memory: nothing; a frozen process that only its own worker can thaw; or all of it, in the snapshot
 * itself, which any worker of the same substrate restores.
 */
export type MemoryKept = "none" | "frozen-on-worker" | "in-snapshot";

/** Format of a {@link SnapshotManifest}. Version 1 named no chain, and 2 no key; every other than this one is refused. */
export const manifestVersion = 3;

/** What a snapshot holds. Signed by the execution's own key, countersigned by the control plane. */
export interface SnapshotManifest {
  readonly version: typeof manifestVersion;
  readonly identity: ExecutionIdentity;
  readonly certificate: Digest;
  readonly previousManifest: Digest | null;
  /** the object that the snapshot's sealed chain ends with: everything before this manifest, down to generation 1. */
  readonly chain: Digest;
  /** The version of the tenant's key that the snapshot is sealed with: its chunks, its chain, and this manifest. */
  readonly keyId: TenantKeyId;
  readonly substrate: SubstrateName;
  readonly memory: MemoryKept;
  /** The filesystem layer, with memory where it is "in-snapshot": an archive cut into chunks. */
  readonly filesystem: readonly Chunk[];
  readonly createdAtSeconds: number;
}
