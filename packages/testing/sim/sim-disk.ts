// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ActivationId, ActivationRecord, RuntimeRecord, SandboxId } from "@space/model";
import { MemoryDisk, MemoryWorkerStore } from "../src/memory-worker-store.ts";
import { Crashed, type Incarnation } from "./event-loop.ts";

/** Whether this write is one in whose midst the process crashes; `before`: before it is made. */
export type WriteFate = "made" | "crash-before" | "crash-after" | "fails";

export interface DiskPorts {
  readonly owner: Incarnation;
  /** Asked before each write. */
  readonly fateOf: (what: string) => WriteFate;
  /** The process ends at this very instant. */
  readonly crash: () => void;
  /** Told of each bundle that is taken. */
  readonly onBundle: (token: string) => void;
  /** Told after each change of a record. */
  readonly onRecord: (before: RuntimeRecord | undefined, after: RuntimeRecord) => void;
}

/**
 * One host's disk. What was written is there for the next process; what was written and not synced is gone when the host
 * loses its power. As in the real store, a synced write takes along everything that was written before it.
 */
export class SimDisk {
  readonly contents = new MemoryDisk();
  #unsynced: (() => void)[] = [];

  wrote(undo: () => void): void {
    this.#unsynced.push(undo);
  }

  sync(): void {
    if (this.#unsynced.length > 0) this.#unsynced = [];
  }

  /** Returns how many writes are lost. */
  loseUnsynced(): number {
    const lost = this.#unsynced;
    this.#unsynced = [];
    for (const undo of lost.toReversed()) undo();
    return lost.length;
  }
}

/** The worker's store on a {@link SimDisk}: the working fake of the contract suite, with the disk's faults. */
export class SimWorkerStore extends MemoryWorkerStore {
  readonly #disk: SimDisk;
  readonly #ports: DiskPorts;

  constructor(disk: SimDisk, ports: DiskPorts) {
    super(disk.contents);
    this.#disk = disk;
    this.#ports = ports;
  }

  override replace(expected: RuntimeRecord | undefined, next: RuntimeRecord): boolean {
    const { sandboxId } = next.identity;
    return this.#write(next.state === "retired" ? "retire" : "install", () => {
      const before = this.read(sandboxId);
      const won = super.replace(expected, next);
      if (!won) return false;
      this.#wroteRecord(sandboxId, before);
      this.#sync();
      this.#ports.onRecord(before, next);
      return true;
    });
  }

  override writeBundle(version: number, token: string): boolean {
    return this.#write("bundle", () => {
      const before = this.#disk.contents.bundle;
      const won = super.writeBundle(version, token);
      if (won) {
        this.#disk.wrote(() => {
          this.#disk.contents.bundle = before;
        });
        this.#sync();
        this.#ports.onBundle(token);
      }
      return won;
    });
  }

  override noteFeedPosition(position: number): void {
    const { contents } = this.#disk;
    this.#write("feed position", () => {
      const before = contents.feedPosition;
      super.noteFeedPosition(position);
      this.#disk.wrote(() => {
        contents.feedPosition = before;
      });
    });
  }

  override syncFeedPosition(): void {
    this.#write("feed sync", () => {
      super.syncFeedPosition();
      this.#sync();
    });
  }

  override prune(keepRetired: number): number {
    return this.#write("prune", () => {
      const before = keepRetired < this.#disk.contents.records.size ? this.all() : [];
      const removed = super.prune(keepRetired);
      for (const record of removed > 0 ? before : []) this.#wroteRecord(record.identity.sandboxId, record);
      this.#sync();
      return removed;
    });
  }

  override writeActivation(activation: ActivationRecord): void {
    const { id } = activation.identity.activation;
    this.#write(`activation ${activation.phase}`, () =>
      this.#changing([id], () => super.writeActivation(activation)),
    );
  }

  override continueActivation(from: ActivationId, next: ActivationRecord): void {
    const ids = [from, next.identity.activation.id];
    this.#write("activation continued", () =>
      this.#changing(ids, () => super.continueActivation(from, next)),
    );
  }

  override removeActivation(id: ActivationId): void {
    this.#write("activation removed", () => this.#changing([id], () => super.removeActivation(id)));
  }

  /** before a record or a bundle is acknowledged. */
  #sync(): void {
    this.#disk.sync();
  }

  #wroteRecord(sandboxId: SandboxId, before: RuntimeRecord | undefined): void {
    const { records } = this.#disk.contents;
    this.#disk.wrote(() => {
      if (before === undefined) records.delete(sandboxId);
      else records.set(sandboxId, before);
    });
  }

  #changing(ids: readonly ActivationId[], change: () => void): void {
    const { activations } = this.#disk.contents;
    const before = ids.map((id) => activations.get(id));
    change();
    this.#disk.wrote(() => {
      for (const [at, id] of ids.entries()) {
        const old = before[at];
        if (old === undefined) activations.delete(id);
        else activations.set(old);
      }
    });
  }

  #write<T>(what: string, action: () => T): T {
    if (!this.#ports.owner.alive) throw new Crashed();
    const fate = this.#ports.fateOf(what);
    if (fate === "crash-before") this.#crash();
    if (fate === "fails") this.beforeWrite(what);
    const value = action();
    if (fate === "crash-after") this.#crash();
    return value;
  }

  #crash(): never {
    this.#ports.crash();
    throw new Crashed();
  }
}
