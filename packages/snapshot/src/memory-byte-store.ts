// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ByteStore,
  requireKeyPrefix,
  requireObjectKey,
  SpaceError,
  type StoredBytes,
} from "@space/model";

interface Held {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

/** Bytes of this process alone: for tests and simulations. */
export class MemoryByteStore implements ByteStore {
  held = new Map<string, Held>();
  readonly #nowMs: () => number;
  /** May throw what a failing disk would. */
  beforePut: (key: string) => void = () => undefined;

  constructor(nowMs: () => number = () => 0) {
    this.#nowMs = nowMs;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    requireObjectKey(key);
    this.beforePut(key);
    this.held.set(key, { bytes: Uint8Array.from(bytes), modifiedMs: this.#nowMs() });
  }

  async get(key: string, limitBytes: number): Promise<Uint8Array | undefined> {
    requireObjectKey(key);
    const found = this.held.get(key);
    if (found !== undefined && found.bytes.length > limitBytes)
      throw new SpaceError("input/too-large", { what: "object", limitBytes });
    return found?.bytes;
  }

  async has(key: string): Promise<boolean> {
    requireObjectKey(key);
    return this.held.has(key);
  }

  async move(from: string, to: string): Promise<boolean> {
    requireObjectKey(from);
    requireObjectKey(to);
    const found = this.held.get(from);
    if (found === undefined) return false;
    this.held.set(to, { bytes: found.bytes, modifiedMs: this.#nowMs() });
    this.held.delete(from);
    return true;
  }

  async remove(key: string): Promise<void> {
    requireObjectKey(key);
    this.held.delete(key);
  }

  async *list(prefix: string): AsyncIterable<StoredBytes> {
    requireKeyPrefix(prefix);
    const found: StoredBytes[] = [];
    for (const [key, { bytes, modifiedMs }] of this.held)
      if (key.startsWith(prefix)) found.push({ key, sizeBytes: bytes.length, modifiedMs });
    yield* found;
  }
}
