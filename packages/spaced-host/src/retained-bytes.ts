// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Memory that several keepers share. */
export interface SharedMemory {
  /** Takes bytes, if there are so many left. */
  tryTake(bytes: number): boolean;
  /** Takes them whether there are or not. */
  overdraw(bytes: number): void;
  give(bytes: number): void;
  /** Whether none is left. */
  readonly exhausted: boolean;
}

const smallestBytes = 1024;
const stepBytes = 256 * 1024;

/** The latest bytes of a sequence, by their offsets in it: a ring that grows to what it holds. */
export class RetainedBytes {
  readonly #memory: SharedMemory;
  #ring: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** The first byte will have this offset. */
  constructor(memory: SharedMemory, offset = 0) {
    this.#memory = memory;
    this.#start = this.#end = offset;
  }

  /** Offset of the oldest byte held. */
  get start(): number {
    return this.#start;
  }

  /** Offset after the newest. */
  get end(): number {
    return this.#end;
  }

  /** Whether as many more bytes fit, within the shared memory. */
  makeRoom(bytes: number): boolean {
    const needed = this.#end - this.#start + bytes;
    if (needed <= this.#ring.length) return true;
    const capacity = capacityFor(needed);
    if (!this.#memory.tryTake(capacity - this.#ring.length)) return false;
    this.#move(capacity);
    return true;
  }

  append(chunk: Buffer): void {
    if (!this.makeRoom(chunk.length)) {
      const capacity = capacityFor(this.#end - this.#start + chunk.length);
      this.#memory.overdraw(capacity - this.#ring.length);
      this.#move(capacity);
    }
    this.#put(chunk);
  }

  /** A copy of at most `maxBytes` from an offset between `start` and `end`. */
  read(from: number, maxBytes: number): Buffer {
    const length = Math.min(maxBytes, this.#end - from);
    const copy = Buffer.allocUnsafe(length);
    const at = this.#ring.length === 0 ? 0 : from % this.#ring.length;
    const first = this.#ring.copy(copy, 0, at, Math.min(at + length, this.#ring.length));
    this.#ring.copy(copy, first, 0, length - first);
    return copy;
  }

  /** Lets go of what lies before the offset. */
  dropBefore(offset: number): void {
    this.#start = Math.min(Math.max(this.#start, offset), this.#end);
  }

  /** Lets go of the oldest bytes, until so many more fit without more memory. */
  squeeze(bytes: number): void {
    this.dropBefore(this.#end + bytes - this.#ring.length);
  }

  /** Lets go of everything and of the memory. */
  release(): void {
    this.#memory.give(this.#ring.length);
    this.#ring = Buffer.alloc(0);
    this.#start = this.#end;
  }

  #move(capacity: number): void {
    const held = this.read(this.#start, this.#end - this.#start);
    this.#ring = Buffer.allocUnsafe(capacity);
    this.#end = this.#start;
    this.#put(held);
  }

  #put(chunk: Buffer): void {
    if (chunk.length === 0) return;
    const at = this.#end % this.#ring.length;
    const first = chunk.copy(this.#ring, at);
    chunk.copy(this.#ring, 0, first);
    this.#end += chunk.length;
  }
}

function capacityFor(bytes: number): number {
  if (bytes > stepBytes) return Math.ceil(bytes / stepBytes) * stepBytes;
  let capacity = smallestBytes;
  while (capacity < bytes) capacity *= 2;
  return capacity;
}
