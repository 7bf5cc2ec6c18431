// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest } from "../ids.ts";

/**
 * Content-addressed storage of snapshot chunks. `put` returns only when the bytes are durable; storing what is there
 * already is a success. `get` verifies the digest and throws `snapshot/missing` or `snapshot/refused`.
 * May be called concurrently.
 */
export interface ObjectStore {
  put(digest: Digest, bytes: Uint8Array): Promise<void>;
  get(digest: Digest): Promise<Uint8Array>;
  has(digest: Digest): Promise<boolean>;
  remove(digest: Digest): Promise<void>;
}
