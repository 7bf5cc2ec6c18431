// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import type { Random } from "@space/model";

/** The same bytes for the same seed: SHA-256 of seed and counter. */
export class SeededRandom implements Random {
  readonly #seed: string;
  #counter = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  bytes(length: number): Uint8Array {
    const blocks: Buffer[] = [];
    for (let have = 0; have < length; have += 32) {
      blocks.push(
        createHash("sha256")
          .update(`${this.#seed} ${this.#counter++}`)
          .digest(),
      );
    }
    return new Uint8Array(Buffer.concat(blocks).subarray(0, length));
  }
}
