// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the snapshot package's `sealed-chunk.ts`, in front of the real one (see loader.ts): between the simulated
// components of one process a chunk's content is handed over as it is, and known by the object that holds it. Every other
// object, such as a damaged copy, is judged by the real functions; and so is everything in a world of real keys and in a
// hunt for a mutant, where chunks have their real form.

import type { Digest, Random } from "@space/model";
import type * as Snapshot from "@space/snapshot";

interface ChunkId {
  readonly digest: Digest;
  readonly name: string;
}

interface RealModule extends Pick<typeof Snapshot, "chunkLimitBytes" | "sealedLimitBytes"> {
  readonly sealChunk: (content: Uint8Array, id: ChunkId, parts: SealParts) => Promise<Uint8Array>;
  readonly openChunk: (stored: Uint8Array, id: ChunkId, secrets: unknown) => Promise<Uint8Array>;
}

interface SealParts {
  readonly secrets: unknown;
  readonly random: Random;
}

const real: RealModule = await import(new URL("../../snapshot/src/sealed-chunk.ts", import.meta.url).href);

export const { chunkLimitBytes, sealedLimitBytes } = real;

/** A name depends on tenant, key and digest: whoever knows it has asked for this very content. */
const sealed = new WeakMap<Uint8Array, { readonly name: string; readonly content: Uint8Array }>();
let isHanding = false;

/** Whether chunks are handed over from now on. */
export function handChunks(wanted: boolean): void {
  isHanding = wanted;
}

export async function sealChunk(content: Uint8Array, id: ChunkId, parts: SealParts): Promise<Uint8Array> {
  if (!isHanding || content.length > chunkLimitBytes) return real.sealChunk(content, id, parts);
  const stored = content.subarray(); // the same bytes, and an object of this chunk alone
  sealed.set(stored, { name: id.name, content });
  return stored;
}

export async function openChunk(stored: Uint8Array, id: ChunkId, secrets: unknown): Promise<Uint8Array> {
  const known = sealed.get(stored);
  return known?.name === id.name ? known.content : real.openChunk(stored, id, secrets);
}
