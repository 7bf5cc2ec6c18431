// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomFillSync } from "node:crypto";
import type { Random } from "@space/model";

const poolBytes = 4096;

/** The kernel's randomness, drawn in pools: an admission id on each request costs no system call. */
class PooledRandom implements Random {
  #pool = Buffer.alloc(0);
  #at = 0;

  bytes(length: number): Uint8Array {
    if (length > poolBytes) return randomFillSync(Buffer.alloc(length));
    if (this.#at + length > this.#pool.length) {
      this.#pool = randomFillSync(Buffer.alloc(poolBytes));
      this.#at = 0;
    }
    const bytes = this.#pool.subarray(this.#at, this.#at + length);
    this.#at += length;
    return bytes;
  }
}

export const systemRandom: Random = new PooledRandom();
