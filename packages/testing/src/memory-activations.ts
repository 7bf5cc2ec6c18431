// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ActivationId, ActivationRecord, SandboxId } from "@space/model";

/** The activations on a {@link MemoryDisk}, by their ids, and by all that may be there only once. */
export class MemoryActivations {
  readonly #byId = new Map<ActivationId, ActivationRecord>();
  readonly #byStart = new Map<ActivationId, ActivationRecord>();
  readonly #bySandbox = new Map<SandboxId, readonly ActivationRecord[]>();
  /** What `values` said last; undefined after a change. */
  #values: readonly ActivationRecord[] | undefined;

  get size(): number {
    return this.#byId.size;
  }

  get(id: ActivationId): ActivationRecord | undefined {
    return this.#byId.get(id);
  }

  values(): readonly ActivationRecord[] {
    this.#values ??= [...this.#byId.values()];
    return this.#values;
  }

  set(activation: ActivationRecord): void {
    const { sandboxId, activation: name } = activation.identity;
    this.#forget(this.#byId.get(name.id));
    this.#values = undefined;
    this.#byId.set(name.id, activation);
    this.#byStart.set(activation.startedAs, activation);
    this.#bySandbox.set(sandboxId, [...this.ofSandbox(sandboxId), activation]);
  }

  delete(id: ActivationId): void {
    this.#forget(this.#byId.get(id));
    this.#values = undefined;
    this.#byId.delete(id);
  }

  /** Another that is of the same process as this one, and not `except`. */
  ofProcess({ startedAs, identity }: ActivationRecord, except?: ActivationId): ActivationRecord | undefined {
    const { id } = identity.activation;
    const held = this.#byStart.get(startedAs);
    const heldId = held?.identity.activation.id;
    return heldId === id || heldId === except ? undefined : held;
  }

  /** Another that is of the same generation of the same sandbox, and not `except`. */
  ofGeneration({ identity }: ActivationRecord, except?: ActivationId): ActivationRecord | undefined {
    const { sandboxId, generation, activation } = identity;
    return this.ofSandbox(sandboxId).find(
      ({ identity: other }) =>
        other.generation === generation &&
        other.activation.id !== activation.id &&
        other.activation.id !== except,
    );
  }

  ofSandbox(sandboxId: SandboxId): readonly ActivationRecord[] {
    return this.#bySandbox.get(sandboxId) ?? [];
  }

  #forget(activation: ActivationRecord | undefined): void {
    if (activation === undefined) return;
    const { startedAs, identity } = activation;
    if (this.#byStart.get(startedAs) === activation) this.#byStart.delete(startedAs);
    const rest = this.ofSandbox(identity.sandboxId).filter((other) => other !== activation);
    if (rest.length === 0) this.#bySandbox.delete(identity.sandboxId);
    else this.#bySandbox.set(identity.sandboxId, rest);
  }
}
