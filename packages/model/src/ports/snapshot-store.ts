// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, TenantId, TenantKeyId } from "../ids.ts";
import type { Chunk } from "../snapshot.ts";
import type { TenantKey } from "../tenant-key.ts";

/**
 * Signed statements of one tenant, sealed, by the SHA-256 of what is inside. `put` returns only when the bytes are
 * durable; storing what is there already is a success. May be called concurrently.
 */
export interface ObjectStore {
  /** `digest` is of the plain `bytes`; throws `snapshot/refused` when it is not, `store/failed` or `store/full` when they cannot be kept. */
  put(digest: Digest, bytes: Uint8Array): Promise<void>;
  /** Verified. Throws `snapshot/missing`, `chunk/…` for each way in which it can be wrong, or `store/failed`. */
  get(digest: Digest): Promise<Uint8Array>;
  /** Whether a snapshot that begins now may rely on it: it is there, whole, and not about to be removed. Throws `store/failed`. */
  keeps(digest: Digest): Promise<boolean>;
}

/** Archives as lists of sealed chunks. May be used concurrently. */
export interface ArchiveStore {
  /** Cuts the archive into chunks and makes each durable; equal archives have equal lists. Throws `input/too-large`, `store/failed` or `store/full`. */
  write(archive: AsyncIterable<Uint8Array>): Promise<readonly Chunk[]>;
  /**
   * The archive again. Each chunk is verified (name, seal, digest and size) before a byte of it is given out; throws as
   * {@link ObjectStore.get}. Reads ahead by a bounded number of chunks.
   */
  read(chunks: readonly Chunk[]): AsyncIterable<Uint8Array>;
  /** The first that is not there, by its name only: a cheap refusal before anything is started. */
  missing(chunks: readonly Chunk[]): Promise<Digest | undefined>;
  /** The names of these chunks in the store, which tell nothing of their content. */
  names(chunks: readonly Chunk[]): readonly string[];
}

/** Somewhere nearer than the store where sealed chunks may be. Trusted with nothing: what it gives is opened like any other. */
export interface ChunkSource {
  /** The sealed chunk of this name in the store; undefined where it has to come from the store. Never rejects. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** What was given under this name was not the chunk, and came from the store instead. */
  refuse(name: string): void;
}

/** Gets sealed chunks as they become durable in the store, for whoever may ask this process for them. */
export interface ChunkSink {
  /** Whether one of about this size would be kept. */
  wants(sizeBytes: number): boolean;
  add(name: string, sealed: Uint8Array): void;
}

/** What besides the store a tenant's snapshots are read from, or kept in. */
export interface ChunkPeers {
  readonly source?: ChunkSource;
  readonly sink?: ChunkSink;
}

/** What one tenant's snapshots are kept in, for as long as its key is held. */
export interface TenantSnapshots {
  readonly objects: ObjectStore;
  readonly archives: ArchiveStore;
}

/** Where the snapshots of all tenants are. */
export interface SnapshotStore {
  /** No request to the store, and nothing of the key outlives the answer. */
  open(key: TenantKey, peers?: ChunkPeers): TenantSnapshots;
}

/** One version of one tenant's key: what equal content is compared within. */
export interface KeyScope {
  readonly tenantId: TenantId;
  readonly keyId: TenantKeyId;
}

/** What is known of a tenant's snapshots, by whoever commits them. Each answer is of the moment of the question, or later. */
export interface SnapshotReferences {
  /** The digest of everything that a snapshot needs which can still be resumed. Fails where it cannot be complete. */
  needed(scope: KeyScope): AsyncIterable<Digest>;
  /**
   * The pauses of this tenant that are under way: from before a chunk is looked for until the manifest is committed or
   * can never be. A text that names this pause and no other.
   */
  underWay(scope: KeyScope): Promise<ReadonlySet<string>>;
}

/** What one pass of a collector did, in chunks. */
export interface Collected {
  /** Put aside, because nothing needed them. */
  readonly condemned: number;
  /** Put back, because a pause that was under way came to need them. */
  readonly restored: number;
  readonly removed: number;
  readonly removedBytes: number;
  /** Batches that a pause still holds up. */
  readonly waiting: number;
}

/** Removes what no snapshot needs any more. */
export interface SnapshotCollector {
  /** One pass over what was sealed with this key. Repeating it is safe at any time, also by several at once. Throws `store/failed`. */
  collect(key: TenantKey): Promise<Collected>;
}
