// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { EnvdError } from "./envd-error.ts";

/** Bytes that one sandbox's requests may hold in memory together. */
export class MemoryBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Throws `resource_exhausted`; then nothing was taken. */
  take(bytes: number): void {
    if (this.#usedBytes + bytes > this.#limitBytes) {
      throw new EnvdError("resource_exhausted", "too much data waits in this sandbox");
    }
    this.#usedBytes += bytes;
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}
