// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One object as a listing shows it. */
export interface StoredBytes {
  readonly key: string;
  readonly sizeBytes: number;
  /** Wall clock of the store, when it was last written or moved. */
  readonly modifiedMs: number;
}

/**
 * Named bytes that outlive processes: a directory, or a bucket. It is trusted with neither their secrecy nor their
 * content. For what is a key see `isObjectKey`; anything else throws a `TypeError`. May be called concurrently, by several processes: a read sees
 * every write that resolved before it. Throws `store/failed` where it cannot do or answer something: never "absent".
 */
export interface ByteStore {
  /** Durable, and whole under its name, when it resolves; replaces what was there. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Undefined when absent. Throws `input/too-large`, before reading, where there are more than `limitBytes`. */
  get(key: string, limitBytes: number): Promise<Uint8Array | undefined>;
  has(key: string): Promise<boolean>;
  /**
   * The same bytes under another key, replacing what was there; false when there are none. Interrupted, they are
   * under one of the keys or under both, never under none.
   */
  move(from: string, to: string): Promise<boolean>;
  /** Absent is a success. */
  remove(key: string): Promise<void>;
  /** Every key that begins with the prefix (whole words, ending in a slash), in no promised order. */
  list(prefix: string): AsyncIterable<StoredBytes>;
}
