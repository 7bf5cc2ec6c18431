// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type ActivationRecord,
  compareIdentity,
  type ExecutionIdentity,
  type RefreshReason,
  type RuntimeRecord,
  type SandboxId,
  SpaceError,
} from "@space/model";
import type { WorkerStore } from "../ports.ts";

/** A start that is under way: whether its process has ended already. */
export interface Starting {
  exited: boolean;
}

/**
 * The runtime processes of this worker: what the store remembers of them, less those that have ended since. A process
 * is gone from the moment that its end is known, also where the store could not be told yet.
 */
export class Executions {
  readonly #store: WorkerStore;
  readonly #gone = new Set<ActivationId>();
  readonly #starting = new Map<ActivationId, Starting>();

  constructor(store: WorkerStore) {
    this.#store = store;
  }

  /** Processes that are running, frozen, or about to start. */
  get count(): number {
    return this.#store.activationCount + this.#starting.size;
  }

  /** Why the installed execution may not be forwarded to now; undefined when it may. */
  refusal(record: RuntimeRecord): RefreshReason | undefined {
    const { id } = record.identity.activation;
    const activation = this.#store.readActivation(id);
    if (activation === undefined || (this.#gone.size > 0 && this.#gone.has(id))) return "execution-gone";
    return activation.phase === "running" ? undefined : "pausing";
  }

  find(id: ActivationId): ActivationRecord | undefined {
    return this.#gone.has(id) ? undefined : this.#store.readActivation(id);
  }

  /** Throws `substrate/failed` when it does not run here, or no more. */
  live(id: ActivationId): ActivationRecord {
    const found = this.find(id);
    if (found !== undefined) return found;
    throw new SpaceError("substrate/failed", { step: "exited" });
  }

  all(): readonly ActivationRecord[] {
    return this.#store.allActivations().filter(({ identity }) => !this.#gone.has(identity.activation.id));
  }

  ofSandbox(sandboxId: SandboxId): readonly ActivationRecord[] {
    return this.#store
      .activationsOf(sandboxId)
      .filter(({ identity }) => !this.#gone.has(identity.activation.id));
  }

  startedAs(id: ActivationId): ActivationRecord | undefined {
    return this.all().find(({ startedAs }) => startedAs === id);
  }

  /** Durable before it returns. The present record is changed, so that a process which ended meanwhile stays ended. */
  change(
    id: ActivationId,
    changes: Partial<Pick<ActivationRecord, "identity" | "phase" | "manifest">>,
  ): ActivationRecord {
    const next = { ...this.live(id), ...changes };
    this.#store.writeActivation(next);
    return next;
  }

  add(activation: ActivationRecord): void {
    this.#store.writeActivation(activation);
  }

  /** A kept process goes on as another activation. */
  goOn(from: ActivationId, next: ActivationRecord): void {
    this.live(from);
    this.#store.continueActivation(from, next);
  }

  markGone(id: ActivationId): void {
    this.#gone.add(id);
  }

  /** The process is proved to be gone: nothing is left to remember. */
  forget(id: ActivationId): void {
    this.#store.removeActivation(id);
    this.#gone.delete(id);
  }

  beginStart(id: ActivationId): Starting {
    const starting = { exited: false };
    this.#starting.set(id, starting);
    return starting;
  }

  findStart(id: ActivationId): Starting | undefined {
    return this.#starting.get(id);
  }

  endStart(id: ActivationId): void {
    this.#starting.delete(id);
  }

  /** The record of exactly this identity, installed. Throws `record/absent` or `record/stale`. */
  installed(identity: ExecutionIdentity): RuntimeRecord {
    const { sandboxId, generation } = identity;
    const record = this.#store.read(sandboxId);
    if (record === undefined) throw new SpaceError("record/absent", { sandboxId });
    if (record.state === "installed" && compareIdentity(identity, record.identity) === "identical")
      return record;
    throw new SpaceError("record/stale", {
      sandboxId,
      installed: record.identity.generation,
      offered: generation,
    });
  }
}
