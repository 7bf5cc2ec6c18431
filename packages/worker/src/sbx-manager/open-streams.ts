// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, RuntimeRecord, SandboxId } from "@space/model";
import type { ResetReason } from "@space/wire";

/** a stream under the lease of its record's epoch. */
export interface LeasedStream {
  /** Whether it ends by itself soon: a pause waits for it, within bounds. */
  readonly isShort: boolean;
  /** Ends input and output in both directions, at once, with this word on both legs. */
  cut(reason: ResetReason): void;
  /** the worker has a lease again: what was held passes now. */
  resume(): void;
}

/** Reads the durable record as it is now. */
export type ReadRecord = (sandboxId: SandboxId) => RuntimeRecord | undefined;

/** what a stream holds: the epoch of the record under which it was admitted. */
export class StreamLease {
  readonly sandboxId: SandboxId;
  readonly #epoch: bigint;
  readonly #read: ReadRecord;

  constructor({ identity, epoch }: RuntimeRecord, read: ReadRecord) {
    this.sandboxId = identity.sandboxId;
    this.#epoch = epoch;
    this.#read = read;
  }

  /** Whether the epoch is still the record's. Asked for every piece that is to pass, so that no end can be missed. */
  get holds(): boolean {
    const record = this.#read(this.sandboxId);
    return record !== undefined && record.epoch === this.#epoch && record.state === "installed";
  }
}

/**
 * the streams open now, by sandbox. All of one sandbox are of its record's present epoch, because whatever
 * advances the epoch cuts them in the same turn of the event loop; a stream that it missed finds its lease ended at its
 * next piece.
 */
export class OpenStreams {
  readonly #clock: Clock;
  readonly #read: ReadRecord;
  readonly #bySandbox = new Map<SandboxId, Set<LeasedStream>>();
  readonly #drains = new Map<SandboxId, Set<() => void>>();

  constructor(clock: Clock, read: ReadRecord) {
    this.#clock = clock;
    this.#read = read;
  }

  get size(): number {
    let size = 0;
    for (const streams of this.#bySandbox.values()) size += streams.size;
    return size;
  }

  /** Registers a stream under the epoch of the record that admitted it, in the turn in which it was read. */
  register(record: RuntimeRecord, stream: LeasedStream): StreamLease {
    const { sandboxId } = record.identity;
    const streams = this.#bySandbox.get(sandboxId);
    if (streams === undefined) this.#bySandbox.set(sandboxId, new Set([stream]));
    else streams.add(stream);
    return new StreamLease(record, this.#read);
  }

  leave({ sandboxId }: StreamLease, stream: LeasedStream): void {
    const streams = this.#bySandbox.get(sandboxId);
    if (streams?.delete(stream) === true && streams.size === 0) this.#bySandbox.delete(sandboxId);
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

  /** */
  resumeAll(): void {
    for (const streams of this.#bySandbox.values()) for (const stream of streams) stream.resume();
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
