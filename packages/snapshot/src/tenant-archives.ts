// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ArchiveStore, type Chunk, type Digest, SpaceError, snapshotChunkLimit } from "@space/model";
import { ByteBudget } from "./byte-budget.ts";
import { digestOf } from "./byte-work.ts";
import { type CutClass, cutArchive, cutClasses } from "./cut-archive.ts";
import type { TenantObjects } from "./tenant-objects.ts";

/** Content on its way to or from the store at once. What is made of it, and waits to be freed, is many times as much. */
const inFlightBytes = 16 * 1024 * 1024;
const inFlightChunks = 8;
/** Look-ups of whether a chunk is there, at once. */
const lookupsAtOnce = 16;

export interface ArchiveOptions {
  /** Default {@link cutClasses}. */
  readonly classes?: readonly CutClass[];
  /** Default {@link snapshotChunkLimit}. */
  readonly maxChunks?: number;
}

/** Archives as chunks among one tenant's objects. */
export function tenantArchives(objects: TenantObjects, options: ArchiveOptions = {}): ArchiveStore {
  const { classes = cutClasses, maxChunks = snapshotChunkLimit } = options;
  return {
    write: (archive) =>
      writeChunks(
        objects,
        cutArchive(archive, () => objects.secrets.cutTable, classes),
        maxChunks,
      ),
    read: (chunks) => readChunks(objects, chunks),
    missing: (chunks) => findMissing(objects, chunks),
    names: (chunks) => chunks.map(({ digest }) => objects.secrets.name(digest)),
  };
}

async function writeChunks(
  objects: TenantObjects,
  pieces: AsyncIterable<Buffer>,
  maxChunks: number,
): Promise<readonly Chunk[]> {
  const chunks: Chunk[] = [];
  const puts = new PutWindow();
  let totalBytes = 0;
  try {
    for await (const piece of pieces) {
      totalBytes += piece.length;
      if (chunks.length >= maxChunks)
        throw new SpaceError("input/too-large", { what: "snapshot", limitBytes: totalBytes - piece.length });
      const digest = await digestOf(piece);
      chunks.push({ digest, sizeBytes: piece.length });
      await puts.add(piece.length, () => objects.putDigested(digest, piece));
    }
  } finally {
    await puts.settled();
  }
  puts.throwIfFailed();
  return chunks;
}

/** A bounded number of puts at a time; remembers the first that failed. */
class PutWindow {
  readonly #budget = new ByteBudget(inFlightBytes, inFlightChunks);
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  async add(sizeBytes: number, put: () => Promise<void>): Promise<void> {
    while (!this.#budget.fits(sizeBytes)) await Promise.race(this.#running);
    this.throwIfFailed();
    this.#budget.take(sizeBytes);
    const tracked = put()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#budget.give(sizeBytes);
        this.#running.delete(tracked);
      });
    this.#running.add(tracked);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

interface Fetched {
  readonly sizeBytes: number;
  readonly content: Promise<Uint8Array>;
}

async function* readChunks(objects: TenantObjects, chunks: readonly Chunk[]): AsyncIterable<Uint8Array> {
  const budget = new ByteBudget(inFlightBytes, inFlightChunks);
  const ahead: Fetched[] = [];
  let next = 0;
  const fetchAhead = (): void => {
    for (; ; next += 1) {
      const chunk = chunks[next];
      if (chunk === undefined || !budget.fits(chunk.sizeBytes)) return;
      budget.take(chunk.sizeBytes);
      const content = getVerified(objects, chunk);
      content.catch(() => undefined); // the reader may stop before it comes to this one
      ahead.push({ sizeBytes: chunk.sizeBytes, content });
    }
  };
  for (fetchAhead(); ; fetchAhead()) {
    const fetched = ahead.shift();
    if (fetched === undefined) return;
    yield await fetched.content;
    budget.give(fetched.sizeBytes);
  }
}

/** Opening it has compared the digest; this compares the size with the manifest. */
async function getVerified(objects: TenantObjects, { digest, sizeBytes }: Chunk): Promise<Uint8Array> {
  const content = await objects.get(digest);
  if (content.length === sizeBytes) return content;
  throw new SpaceError("chunk/size", { name: objects.secrets.name(digest) });
}

async function findMissing(objects: TenantObjects, chunks: readonly Chunk[]): Promise<Digest | undefined> {
  for (let at = 0; at < chunks.length; at += lookupsAtOnce) {
    const looked = chunks.slice(at, at + lookupsAtOnce);
    const found = await Promise.all(looked.map(({ digest }) => objects.has(digest)));
    const absent = looked[found.indexOf(false)];
    if (absent !== undefined) return absent.digest;
  }
  return undefined;
}
