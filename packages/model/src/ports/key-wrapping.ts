// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Secret } from "../secret.ts";

/**
 * Whoever holds key-encryption keys: a file, a key management service. What it returns can be kept anywhere, and says by
 * itself which of its keys opens it. May be called concurrently.
 */
export interface KeyWrapping {
  /** Under the newest key. `context` is bound to it: the same words are needed to open it. Throws `key-wrapping/failed`. */
  wrap(secret: Secret<Uint8Array>, context: string): Promise<Uint8Array>;
  /** Throws `key-wrapping/unknown` where the key that it names is not held, `key-wrapping/refused` for what was not wrapped so. */
  unwrap(wrapped: Uint8Array, context: string): Promise<Secret<Uint8Array>>;
  /** Whether it is under the newest key. Throws as `unwrap`, as far as that can be told without opening it. */
  isNewest(wrapped: Uint8Array): Promise<boolean>;
}
