// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest } from "../ids.ts";
import type { Chunk } from "../snapshot.ts";

/**
 * Content-addressed storage of snapshot chunks. `put` returns only when the bytes are durable; storing what is there
 * already is a success. `get` verifies the digest and throws `snapshot/missing` or `snapshot/refused`.
 * May be called concurrently.
 */
export interface ObjectStore {
  /** `digest` is of the plain `bytes`; throws `snapshot/refused` when it is not, `store/failed` when they cannot be kept. */
  put(digest: Digest, bytes: Uint8Array): Promise<void>;
  get(digest: Digest): Promise<Uint8Array>;
  has(digest: Digest): Promise<boolean>;
  remove(digest: Digest): Promise<void>;
}

/** Archives as lists of chunks in an {@link ObjectStore}. May be used concurrently. */
export interface ArchiveStore {
  /** Cuts the archive into chunks and makes each durable; equal archives have equal lists. Throws `input/too-large` or `store/failed`. */
  write(archive: AsyncIterable<Uint8Array>): Promise<readonly Chunk[]>;
  /**
   * The archive again. Each chunk is verified (digest and size) before a byte of it is given out; throws
   * `snapshot/missing` or `snapshot/refused`. Reads ahead by a bounded number of chunks.
   */
  read(chunks: readonly Chunk[]): AsyncIterable<Uint8Array>;
  /** Whether every chunk is there, by name only: a cheap refusal before anything is started. */
  missing(chunks: readonly Chunk[]): Promise<Digest | undefined>;
}
