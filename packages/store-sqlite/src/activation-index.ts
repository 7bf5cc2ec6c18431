// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ActivationId, ActivationRecord, SandboxId } from "@space/model";

const none: readonly ActivationRecord[] = [];

/** Activations by their ids and by their sandboxes, of which each has one or two. What it holds does not change. */
export class ActivationIndex {
  readonly #byId = new Map<ActivationId, ActivationRecord>();
  readonly #bySandbox = new Map<SandboxId, readonly ActivationRecord[]>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: ActivationId): ActivationRecord | undefined {
    return this.#byId.get(id);
  }

  all(): readonly ActivationRecord[] {
    return [...this.#byId.values()];
  }

  of(sandboxId: SandboxId): readonly ActivationRecord[] {
    return this.#bySandbox.get(sandboxId) ?? none;
  }

  /** In the place of the one of the same id. */
  set(activation: ActivationRecord): void {
    const { sandboxId, activation: name } = activation.identity;
    this.delete(name.id);
    this.#byId.set(name.id, activation);
    this.#bySandbox.set(sandboxId, [...this.of(sandboxId), activation]);
  }

  delete(id: ActivationId): void {
    const activation = this.#byId.get(id);
    if (activation === undefined) return;
    this.#byId.delete(id);
    const { sandboxId } = activation.identity;
    const rest = this.of(sandboxId).filter((other) => other !== activation);
    if (rest.length > 0) this.#bySandbox.set(sandboxId, rest);
    else this.#bySandbox.delete(sandboxId);
  }
}
