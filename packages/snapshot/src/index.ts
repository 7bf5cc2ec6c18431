// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { ChunkCollector, type CollectorOptions, type CollectorPorts } from "./collect-chunks.ts";
export { type CutClass, cutArchive, cutClasses } from "./cut-archive.ts";
export { MemoryByteStore } from "./memory-byte-store.ts";
export { MemoryKeyWrapping } from "./memory-key-wrapping.ts";
export { chunkLimitBytes, sealedLimitBytes } from "./sealed-chunk.ts";
export { snapshotStore } from "./snapshot-store.ts";
export type { ArchiveOptions } from "./tenant-archives.ts";
export { type TenantKeyPorts, TenantKeys } from "./tenant-keys.ts";
export { placeOf } from "./tenant-secrets.ts";
