// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { statfsSync } from "node:fs";
import type { ActivationId } from "@space/model";
import { runProgram } from "./run-program.ts";

export interface WatchedLayer {
  readonly path: string;
  readonly limitBytes: number;
}

const sampleMs = 500;
/** Growth of the host's file system that makes the layers worth measuring. */
const suspiciousBytes = 32 * 1024 * 1024;
/** Measured at least this often, because deletions elsewhere can hide growth. */
const longestMs = 30_000;

/**
 * Ends guests that have outgrown their disk. It looks at one number, the free space of the file system, and measures
 * layers only when that shrinks: docs/adr/0004-disk-limits.md says what this promises and what it does not.
 */
export class DiskWatch {
  readonly #folder: string;
  readonly #onExceeded: (activationId: ActivationId) => void;
  readonly #layers = new Map<ActivationId, WatchedLayer>();
  #timer: NodeJS.Timeout | undefined;
  #usedBytes = 0;
  #measuredAtMs = 0;
  #measuring = false;

  constructor(folder: string, onExceeded: (activationId: ActivationId) => void) {
    this.#folder = folder;
    this.#onExceeded = onExceeded;
  }

  add(activationId: ActivationId, layer: WatchedLayer): void {
    this.#layers.set(activationId, layer);
    if (this.#timer !== undefined) return;
    this.#usedBytes = usedBytes(this.#folder);
    this.#timer = setInterval(() => this.#sample(), sampleMs).unref();
  }

  remove(activationId: ActivationId): void {
    this.#layers.delete(activationId);
    if (this.#layers.size === 0) this.close();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sample(): void {
    if (this.#measuring) return;
    const used = usedBytes(this.#folder);
    const grown = used - this.#usedBytes;
    if (grown < 0) this.#usedBytes = used;
    const due = performance.now() - this.#measuredAtMs > longestMs;
    if (grown < suspiciousBytes && !due) return;
    this.#usedBytes = used;
    this.#measuring = true;
    void this.#measure().finally(() => {
      this.#measuring = false;
      this.#measuredAtMs = performance.now();
    });
  }

  async #measure(): Promise<void> {
    for (const [activationId, { path, limitBytes }] of [...this.#layers]) {
      const used = await layerBytes(path);
      if (used > limitBytes && this.#layers.has(activationId)) this.#onExceeded(activationId);
    }
  }
}

/** Bytes that a layer occupies. Zero when it has gone away meanwhile. */
export async function layerBytes(path: string): Promise<number> {
  try {
    const output = await runProgram("du", ["--summarize", "--one-file-system", "--block-size=1", "--", path]);
    return Number.parseInt(output, 10) || 0;
  } catch {
    return 0; // files vanish while du walks; the next round sees the rest
  }
}

function usedBytes(folder: string): number {
  const { blocks, bfree, bsize } = statfsSync(folder);
  return (blocks - bfree) * bsize;
}

/** Bytes that unprivileged writers may still take from the file system of `folder`. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
