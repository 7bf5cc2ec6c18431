// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type ActivationRecord,
  type ActivationStore,
  compareIdentity,
  type RuntimeRecord,
  type RuntimeRecordStore,
  type SandboxId,
  SpaceError,
  type StoreSuccession,
  type SuccessionStore,
  sameRoute,
} from "@space/model";
import { MemoryActivations } from "./memory-activations.ts";

/** What outlives a {@link MemoryWorkerStore} that is closed, as a disk would. */
export class MemoryDisk {
  readonly records = new Map<SandboxId, RuntimeRecord>();
  readonly activations = new MemoryActivations();
  bundle: { readonly version: number; readonly token: string } | undefined;
  feedPosition = 0;
  succession: { readonly held: string | null; readonly next: string | null } = { held: null, next: null };
  inUse = false;

  /** The same contents, in another place. */
  copy(): MemoryDisk {
    const copy = new MemoryDisk();
    for (const [key, value] of this.records) copy.records.set(key, value);
    for (const activation of this.activations.values()) copy.activations.set(activation);
    copy.bundle = this.bundle;
    copy.succession = this.succession;
    copy.feedPosition = this.feedPosition;
    return copy;
  }
}

/**
 * A worker's store in memory that keeps every rule of the real one. `beforeWrite` is called with the name of each write
 * before it happens; what it throws is what a failing disk would do.
 */
export class MemoryWorkerStore implements RuntimeRecordStore, ActivationStore, SuccessionStore {
  readonly #disk: MemoryDisk;
  #open = true;
  beforeWrite: (what: string) => void = () => undefined;

  constructor(disk: MemoryDisk = new MemoryDisk()) {
    if (disk.inUse) throw new SpaceError("data/in-use", { pid: 0 });
    disk.inUse = true;
    this.#disk = disk;
  }

  read(sandboxId: SandboxId): RuntimeRecord | undefined {
    return this.#disk.records.get(sandboxId);
  }

  all(): readonly RuntimeRecord[] {
    return [...this.#disk.records.values()];
  }

  replace(expected: RuntimeRecord | undefined, next: RuntimeRecord): boolean {
    this.#write(next.state === "retired" ? "retire" : "replace");
    const { sandboxId } = next.identity;
    const held = this.#disk.records.get(sandboxId);
    if (!sameVersion(held, expected)) return false;
    if (held !== undefined) keepRules(held, next);
    this.#disk.records.delete(sandboxId); // so that the order of the map is the order of the writes
    this.#disk.records.set(sandboxId, Object.freeze({ ...next }));
    return true;
  }

  prune(keepRetired: number): number {
    this.#write("prune");
    if (this.#disk.records.size <= keepRetired) return 0;
    const retired = this.all().filter(({ state }) => state === "retired");
    const forgotten = retired.slice(0, Math.max(0, retired.length - keepRetired));
    for (const { identity } of forgotten) this.#disk.records.delete(identity.sandboxId);
    return forgotten.length;
  }

  readBundle(): { readonly version: number; readonly token: string } | undefined {
    return this.#disk.bundle;
  }

  writeBundle(version: number, token: string): boolean {
    this.#write("bundle");
    if (this.#disk.bundle !== undefined && this.#disk.bundle.version >= version) return false;
    this.#disk.bundle = Object.freeze({ version, token });
    return true;
  }

  get feedPosition(): number {
    return this.#disk.feedPosition;
  }

  noteFeedPosition(position: number): void {
    this.#write("feed-position");
    this.#disk.feedPosition = Math.max(this.#disk.feedPosition, position);
  }

  syncFeedPosition(): void {
    this.#write("feed-sync");
  }

  beginSuccession(newToken: () => string): StoreSuccession {
    this.#write("succession");
    const { held, next } = this.#disk.succession;
    const step = { held, next: next ?? newToken() };
    this.#disk.succession = step;
    return step;
  }

  finishSuccession({ next }: StoreSuccession): void {
    this.#write("succession");
    if (this.#disk.succession.next === next) this.#disk.succession = { held: next, next: null };
  }

  readActivation(id: ActivationId): ActivationRecord | undefined {
    return this.#disk.activations.get(id);
  }

  allActivations(): readonly ActivationRecord[] {
    return this.#disk.activations.values();
  }

  activationsOf(sandboxId: SandboxId): readonly ActivationRecord[] {
    return this.#disk.activations.ofSandbox(sandboxId);
  }

  get activationCount(): number {
    return this.#disk.activations.size;
  }

  writeActivation(activation: ActivationRecord): void {
    this.#write(`activation-${activation.phase}`);
    this.#keepOneProcess(activation, undefined);
    this.#disk.activations.set(Object.freeze({ ...activation }));
  }

  continueActivation(from: ActivationId, next: ActivationRecord): void {
    this.#write("activation-continued");
    this.#keepOneProcess(next, from);
    this.#disk.activations.delete(from);
    this.#disk.activations.set(Object.freeze({ ...next }));
  }

  removeActivation(id: ActivationId): void {
    this.#write("activation-removed");
    this.#disk.activations.delete(id);
  }

  close(): void {
    if (this.#open) this.#disk.inUse = false;
    this.#open = false;
  }

  #write(what: string): void {
    if (!this.#open) throw new SpaceError("store/failed", { step: "closed" });
    this.beforeWrite(what);
  }

  #keepOneProcess(next: ActivationRecord, except: ActivationId | undefined): void {
    const hasManifest = next.phase === "snapshotted" || next.phase === "kept";
    if (hasManifest !== (next.manifest !== null)) throw broken("snapshot_has_its_manifest");
    const { activations } = this.#disk;
    if (activations.ofProcess(next, except) !== undefined) throw broken("one_activation_per_process");
    if (activations.ofGeneration(next, except) !== undefined) throw broken("r3_one_process_per_generation");
  }
}

function sameVersion(held: RuntimeRecord | undefined, expected: RuntimeRecord | undefined): boolean {
  if (held === undefined || expected === undefined) return held === expected;
  return (
    held.epoch === expected.epoch &&
    held.state === expected.state &&
    compareIdentity(held.identity, expected.identity) === "identical"
  );
}

function keepRules(held: RuntimeRecord, next: RuntimeRecord): void {
  const [old, now] = [held.identity, next.identity];
  const sameGeneration = old.generation === now.generation;
  if (now.generation < old.generation) throw broken("r12_order_only_grows");
  if (sameGeneration && now.activation.attempt < old.activation.attempt) throw broken("r12_order_only_grows");
  if (sameGeneration && (!sameRoute(old, now) || old.activation.id !== now.activation.id))
    throw broken("r12_generation_names_one_process");
  if (sameGeneration && held.state === "retired") throw broken("r12_tombstone_stays");
  const mustAdvance = !sameGeneration || held.state !== next.state;
  if (next.epoch < held.epoch || (mustAdvance && next.epoch === held.epoch))
    throw broken("r21_epoch_only_grows");
}

function broken(rule: string): SpaceError {
  return new SpaceError("store/failed", { step: rule });
}
