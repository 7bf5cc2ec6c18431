// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChunkSink, Clock, Digest, ExecutionIdentity } from "@space/model";

export interface HandOverLimits {
  /** Sealed bytes held at once, of all snapshots together. */
  readonly handedOverBytes: number;
  /** How long a snapshot's chunks are held for the worker that they are for. */
  readonly handedOverMs: number;
}

/** The sealed chunks of one snapshot that is moved, as far as they are held. */
export interface HeldSnapshot {
  /** The execution that the snapshot is of. */
  readonly identity: ExecutionIdentity;
  /** Every chunk that the manifest lists; undefined: it is not held. */
  chunk(name: string): { readonly sealed: Buffer | undefined } | undefined;
}

/** Takes chunks while a snapshot is written; forgets them unless it is `finish`ed. */
export interface HandOverDraft extends ChunkSink, Disposable {
  /** From now on these may be asked for under the manifest's digest. */
  finish(manifest: Digest, names: readonly string[]): void;
}

interface Held extends HeldSnapshot {
  readonly sizeBytes: number;
  readonly cancel: () => void;
}

/**
 * What this process holds in memory, for a moment, of snapshots that it has just made durable and that go on at another
 * worker. All of it is sealed, and all of it is in the store: whatever is forgotten here costs time alone.
 */
export class HandOvers {
  readonly #limits: HandOverLimits;
  readonly #clock: Clock;
  readonly #held = new Map<Digest, Held>();
  #bytes = 0;

  constructor(limits: HandOverLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get heldBytes(): number {
    return this.#bytes;
  }

  find(manifest: Digest): HeldSnapshot | undefined {
    return this.#held.get(manifest);
  }

  begin(identity: ExecutionIdentity): HandOverDraft {
    const chunks = new Map<string, Buffer>();
    let sizeBytes = 0;
    let isFinished = false;
    const forget = (): void => {
      if (!isFinished) this.#bytes -= sizeBytes;
      isFinished = true;
    };
    return {
      wants: (more) => !isFinished && this.#bytes + more <= this.#limits.handedOverBytes,
      add: (name, sealed) => {
        const hasRoom = this.#bytes + sealed.length <= this.#limits.handedOverBytes;
        if (isFinished || chunks.has(name) || !hasRoom) return;
        chunks.set(name, Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength));
        sizeBytes += sealed.length;
        this.#bytes += sealed.length;
      },
      finish: (manifest, names) => {
        if (isFinished) throw new TypeError("a hand-over is finished once");
        isFinished = true;
        const listed = new Set(names);
        this.drop(manifest);
        this.#held.set(manifest, {
          identity,
          sizeBytes,
          chunk: (name) => (listed.has(name) ? { sealed: chunks.get(name) } : undefined),
          cancel: this.#clock.after(this.#limits.handedOverMs, () => this.drop(manifest)),
        });
      },
      [Symbol.dispose]: forget,
    };
  }

  drop(manifest: Digest): void {
    const held = this.#held.get(manifest);
    if (held === undefined) return;
    this.#held.delete(manifest);
    this.#bytes -= held.sizeBytes;
    held.cancel();
  }

  clear(): void {
    for (const manifest of [...this.#held.keys()]) this.drop(manifest);
  }
}
