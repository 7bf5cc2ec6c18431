// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import {
  type ArchiveStore,
  type Chunk,
  chunkSizeBytes,
  type Digest,
  type ObjectStore,
  parseDigest,
  SpaceError,
  snapshotChunkLimit,
} from "@space/model";

/** Chunks being stored at once while the next one fills, and chunks fetched ahead of the reader. */
const inFlightLimit = 2;

export interface ArchiveOptions {
  /** Length of every chunk but the last; default {@link chunkSizeBytes}. */
  readonly chunkBytes?: number;
  /** Default {@link snapshotChunkLimit}. */
  readonly maxChunks?: number;
}

/** Archives cut into chunks of one length, so that equal content has equal chunks and is stored once. */
export function chunkedArchives(objects: ObjectStore, options: ArchiveOptions = {}): ArchiveStore {
  const { chunkBytes = chunkSizeBytes, maxChunks = snapshotChunkLimit } = options;
  return {
    write: (archive) => writeArchive(objects, cut(archive, chunkBytes), chunkBytes * maxChunks, maxChunks),
    read: (chunks) => readArchive(objects, chunks),
    missing: (chunks) => findMissing(objects, chunks),
  };
}

async function writeArchive(
  objects: ObjectStore,
  pieces: AsyncIterable<Buffer>,
  limitBytes: number,
  maxChunks: number,
): Promise<readonly Chunk[]> {
  const chunks: Chunk[] = [];
  const puts = new PutWindow();
  try {
    for await (const piece of pieces) {
      if (chunks.length >= maxChunks)
        throw new SpaceError("input/too-large", { what: "snapshot", limitBytes });
      const digest = parseDigest(hash("sha256", piece, "hex"));
      chunks.push({ digest, sizeBytes: piece.length });
      await puts.add(objects.put(digest, piece));
    }
  } finally {
    await puts.settled();
  }
  puts.throwIfFailed();
  return chunks;
}

/** At most {@link inFlightLimit} puts at a time; remembers the first that failed. */
class PutWindow {
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  async add(put: Promise<void>): Promise<void> {
    const tracked = put
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    if (this.#running.size >= inFlightLimit) await Promise.race(this.#running);
    this.throwIfFailed();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/** Fresh buffers of exactly `chunkBytes`, the last one shorter; none for an empty archive. */
async function* cut(archive: AsyncIterable<Uint8Array>, chunkBytes: number): AsyncIterable<Buffer> {
  let piece = Buffer.allocUnsafeSlow(chunkBytes);
  let filled = 0;
  for await (const bytes of archive) {
    for (let at = 0; at < bytes.length; ) {
      const taken = bytes.subarray(at, at + chunkBytes - filled);
      piece.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < chunkBytes) continue;
      yield piece;
      piece = Buffer.allocUnsafeSlow(chunkBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}

async function* readArchive(objects: ObjectStore, chunks: readonly Chunk[]): AsyncIterable<Uint8Array> {
  const ahead: Promise<Uint8Array>[] = [];
  let next = 0;
  const fetchAhead = (): void => {
    for (; ahead.length < inFlightLimit; next += 1) {
      const chunk = chunks[next];
      if (chunk === undefined) return;
      const fetched = getVerified(objects, chunk);
      fetched.catch(() => undefined); // the reader may stop before it comes to this one
      ahead.push(fetched);
    }
  };
  for (fetchAhead(); ; fetchAhead()) {
    const fetched = ahead.shift();
    if (fetched === undefined) return;
    yield await fetched;
  }
}

/** The store has compared the digest with the bytes; this compares the size with the manifest. */
async function getVerified(objects: ObjectStore, chunk: Chunk): Promise<Uint8Array> {
  const bytes = await objects.get(chunk.digest);
  if (bytes.length === chunk.sizeBytes) return bytes;
  throw new SpaceError("snapshot/refused", { problem: "a chunk has another size" });
}

async function findMissing(objects: ObjectStore, chunks: readonly Chunk[]): Promise<Digest | undefined> {
  for (const { digest } of chunks) if (!(await objects.has(digest))) return digest;
  return undefined;
}
