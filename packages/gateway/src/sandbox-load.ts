// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId } from "@space/model";

/** How many requests are under way, for each sandbox and in all. */
export class SandboxLoad {
  readonly #perSandbox: number;
  readonly #inAll: number;
  readonly #counts = new Map<SandboxId, number>();
  #total = 0;

  constructor(limits: { readonly sandboxRequests: number; readonly requests: number }) {
    this.#perSandbox = limits.sandboxRequests;
    this.#inAll = limits.requests;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts one in, unless a limit is reached. Each `true` is to be matched by one `leave`. */
  enter(sandboxId: SandboxId): boolean {
    const count = this.#counts.get(sandboxId) ?? 0;
    if (count >= this.#perSandbox || this.#total >= this.#inAll) return false;
    this.#counts.set(sandboxId, count + 1);
    this.#total += 1;
    return true;
  }

  leave(sandboxId: SandboxId): void {
    const count = this.#counts.get(sandboxId) ?? 0;
    if (count > 1) this.#counts.set(sandboxId, count - 1);
    else this.#counts.delete(sandboxId);
    this.#total -= 1;
  }
}
