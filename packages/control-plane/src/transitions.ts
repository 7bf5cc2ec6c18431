// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, SandboxId } from "@space/model";

export type TransitionKind = "create" | "resume" | "pause" | "snapshot" | "move" | "kill" | "recover";

/** How a transition ended. */
export type TransitionEnd = { readonly kind: "done" } | { readonly kind: "failed"; readonly error: unknown };

export interface RunningTransition {
  readonly kind: TransitionKind;
  /** Never rejects. */
  readonly end: Promise<TransitionEnd>;
}

/**
 * The transitions that this process drives now, so that others of the same sandbox wait for the end instead of asking
 * the store again and again. Only a hint: what may be done is decided by the conditional write.
 */
export class Transitions {
  readonly #running = new Map<SandboxId, RunningTransition>();

  readonly #left = new Set<SandboxId>();

  /** Its transition stopped half-way, and nobody drives it. */
  leave(sandboxId: SandboxId): void {
    this.#left.add(sandboxId);
  }

  /** Those that were left, once. */
  takeLeft(): readonly SandboxId[] {
    const left = [...this.#left];
    this.#left.clear();
    return left;
  }

  /** The newest of the sandbox. */
  current(sandboxId: SandboxId): RunningTransition | undefined {
    return this.#running.get(sandboxId);
  }

  get count(): number {
    return this.#running.size;
  }

  /** Drives, and is seen to. The caller has won the claim. */
  run<T>(sandboxId: SandboxId, kind: TransitionKind, drive: () => Promise<T>): Promise<T> {
    const result = drive();
    const end = result.then(
      (): TransitionEnd => ({ kind: "done" }),
      (error: unknown): TransitionEnd => ({ kind: "failed", error }),
    );
    const running = { kind, end };
    this.#running.set(sandboxId, running);
    void end.then(() => {
      if (this.#running.get(sandboxId) === running) this.#running.delete(sandboxId);
    });
    return result;
  }

  /** Resolves when everything that runs now has ended. */
  async idle(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ end }) => end));
  }
}

/** The promise's value, or `undefined` when it has none within the limit; what it does then goes on. */
export function within<T>(clock: Clock, limitMs: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => resolve(undefined));
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error instanceof Error ? error : new TypeError("not an error", { cause: error }));
      },
    );
  });
}
