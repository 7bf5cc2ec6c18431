// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export {
  ChunkCollector,
  type Collected,
  type CollectorOptions,
  type CollectorPorts,
  type SnapshotReferences,
} from "./collect-chunks.ts";
export { type CutClass, cutArchive, cutClasses } from "./cut-archive.ts";
export { MemoryByteStore } from "./memory-byte-store.ts";
export type { KeyScope } from "./places.ts";
export { chunkLimitBytes, sealedLimitBytes } from "./sealed-chunk.ts";
export { type SnapshotStore, snapshotStore, type TenantSnapshots } from "./snapshot-store.ts";
export type { ArchiveOptions } from "./tenant-archives.ts";
export { type Rewrapped, type TenantKeyPorts, TenantKeys } from "./tenant-keys.ts";
