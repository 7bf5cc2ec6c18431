// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, SandboxId } from "@space/model";
import type { ResetReason } from "@space/wire";

/** a stream under the lease of its record's epoch. */
export interface LeasedStream {
  /** Whether it ends by itself soon: a pause waits for it, within bounds. */
  readonly isShort: boolean;
  /** Ends input and output in both directions, at once, with this word on both legs. */
  cut(reason: ResetReason): void;
}

/**
 * the streams open now, by sandbox. All of one sandbox are of its record's present epoch, because whatever
 * advances the epoch cuts them in the same turn of the event loop.
 */
export class OpenStreams {
  readonly #clock: Clock;
  readonly #bySandbox = new Map<SandboxId, Set<LeasedStream>>();
  readonly #drains = new Map<SandboxId, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    let size = 0;
    for (const streams of this.#bySandbox.values()) size += streams.size;
    return size;
  }

  register(sandboxId: SandboxId, stream: LeasedStream): void {
    const streams = this.#bySandbox.get(sandboxId);
    if (streams === undefined) this.#bySandbox.set(sandboxId, new Set([stream]));
    else streams.add(stream);
  }

  leave(sandboxId: SandboxId, stream: LeasedStream): void {
    this.#bySandbox.get(sandboxId)?.delete(stream);
    const drains = this.#drains.get(sandboxId);
    if (drains === undefined || this.#hasShort(sandboxId)) return;
    for (const drained of drains) drained();
  }

  /** Ends every stream of the sandbox before it returns. Returns how many. */
  cut(sandboxId: SandboxId, reason: ResetReason): number {
    const streams = this.#bySandbox.get(sandboxId);
    if (streams === undefined) return 0;
    this.#bySandbox.delete(sandboxId);
    for (const stream of streams) stream.cut(reason);
    return streams.size;
  }

  cutAll(reason: ResetReason): void {
    for (const sandboxId of [...this.#bySandbox.keys()]) this.cut(sandboxId, reason);
  }

  /** Resolves when no short stream of the sandbox is open, at the latest after `limitMs`. */
  drained(sandboxId: SandboxId, limitMs: number): Promise<void> {
    if (!this.#hasShort(sandboxId)) return Promise.resolve();
    return new Promise((resolve) => {
      const drains = this.#drains.get(sandboxId) ?? new Set();
      this.#drains.set(sandboxId, drains);
      const finish = (): void => {
        cancel();
        drains.delete(finish);
        if (drains.size === 0) this.#drains.delete(sandboxId);
        resolve();
      };
      const cancel = this.#clock.after(limitMs, finish);
      drains.add(finish);
    });
  }

  #hasShort(sandboxId: SandboxId): boolean {
    for (const { isShort } of this.#bySandbox.get(sandboxId) ?? []) if (isShort) return true;
    return false;
  }
}
