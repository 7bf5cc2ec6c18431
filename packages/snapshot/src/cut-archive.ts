// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** How chunks are cut from their first one of this size class on. */
export interface CutClass {
  /** For so many chunks of an archive in all; then the next class. */
  readonly untilChunk: number;
  /** A cut is made where so many bits of the rolling hash are zero: once in 2^bits places. */
  readonly bits: number;
  readonly minBytes: number;
  readonly maxBytes: number;
}

const kib = 1024;
const mib = 1024 * kib;

/**
 * Small chunks first, so that small archives share much; then longer ones, so that a list of 2800 holds more than 11 GB
 * whatever is in it that was not made to be cut. Each class's cuts are among those of the class before.
 */
export const cutClasses: readonly CutClass[] = [
  { untilChunk: 256, bits: 18, minBytes: 64 * kib, maxBytes: mib },
  { untilChunk: 1024, bits: 20, minBytes: 256 * kib, maxBytes: 4 * mib },
  { untilChunk: Number.POSITIVE_INFINITY, bits: 22, minBytes: 4 * mib, maxBytes: 8 * mib },
];

/** The rolling hash is of this many bytes: each is shifted out of its 32 bits. */
const windowBytes = 32;

/**
 * Cuts an archive where its content says so (a gear hash), so that what was moved by an insertion is cut as before.
 * Yields fresh buffers, none of them empty; holds no more than the longest chunk.
 */
export async function* cutArchive(
  archive: AsyncIterable<Uint8Array>,
  table: () => Int32Array,
  classes: readonly CutClass[] = cutClasses,
): AsyncIterable<Buffer> {
  const held = new HeldBytes();
  let cut = new CutSearch(classAt(classes, 0));
  let count = 0;
  for await (const bytes of archive) {
    for (let at = 0; at < bytes.length; ) {
      const taken = bytes.subarray(at, at + cut.size.maxBytes - held.length);
      held.append(taken);
      at += taken.length;
      for (;;) {
        const length = cut.find(held.bytes, table);
        if (length === undefined) break;
        yield held.take(length);
        count += 1;
        cut = new CutSearch(classAt(classes, count));
      }
    }
  }
  if (held.length > 0) yield held.take(held.length);
}

function classAt(classes: readonly CutClass[], count: number): CutClass {
  const found = classes.find(({ untilChunk }) => count < untilChunk);
  if (found === undefined) throw new TypeError("the last size class has an end");
  return found;
}

/** Looks for one cut in bytes that become more; goes on where it stopped. */
class CutSearch {
  readonly size: CutClass;
  readonly #mask: number;
  #next: number;
  #hash = 0;

  constructor(size: CutClass) {
    this.size = size;
    this.#mask = -1 << (32 - size.bits);
    this.#next = Math.max(0, size.minBytes - windowBytes);
  }

  /** The length of the chunk; undefined while it may still become longer. */
  find(bytes: Uint8Array, table: () => Int32Array): number | undefined {
    const { minBytes, maxBytes } = this.size;
    const end = Math.min(bytes.length, maxBytes);
    if (end < minBytes) return undefined;
    const words = table();
    const mask = this.#mask;
    let hash = this.#hash;
    let at = this.#next;
    for (; at < minBytes - 1; at += 1) hash = ((hash << 1) + word(words, bytes, at)) | 0;
    for (; at < end; at += 1) {
      hash = ((hash << 1) + word(words, bytes, at)) | 0;
      if ((hash & mask) === 0) return at + 1;
    }
    this.#hash = hash;
    this.#next = at;
    return end === maxBytes ? maxBytes : undefined;
  }
}

function word(words: Int32Array, bytes: Uint8Array, at: number): number {
  return words[bytes[at] as number] as number; // cast: `at` is below the length, and a byte below 256
}

/** Bytes in one buffer that grows as it must. */
class HeldBytes {
  #buffer = new Uint8Array(0);
  length = 0;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }

  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#buffer.length));
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.length);
    this.length = needed;
  }

  /** The first bytes, copied; the others move to the front. */
  take(length: number): Buffer {
    const taken = Buffer.allocUnsafeSlow(length);
    taken.set(this.#buffer.subarray(0, length));
    this.#buffer.copyWithin(0, length, this.length);
    this.length -= length;
    return taken;
  }
}
