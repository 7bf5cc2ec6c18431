// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Clock,
  compareIdentity,
  type ExecutionIdentity,
  type SandboxId,
  type WorkerPresence,
  type WorkerReport,
} from "@space/model";

/**
 * What the control plane has still to hear, at most one report per sandbox. Each is sent until it is acknowledged,
 * over whatever link there is then.
 */
export class Reports {
  readonly #clock: Clock;
  readonly #retryMs: number;
  readonly #pending = new Map<SandboxId, WorkerReport>();
  #presence: WorkerPresence | undefined;
  #sendingOver: WorkerPresence | undefined;
  #cancelRetry: () => void = () => undefined;

  constructor(clock: Clock, retryMs: number) {
    this.#clock = clock;
    this.#retryMs = retryMs;
  }

  get pending(): readonly WorkerReport[] {
    return [...this.#pending.values()];
  }

  add(report: WorkerReport): void {
    this.#pending.set(report.identity.sandboxId, report);
    this.#flush();
  }

  /** The control plane has decided itself: what it has not heard of this execution does not matter any more. */
  drop(identity: ExecutionIdentity): void {
    const report = this.#pending.get(identity.sandboxId);
    if (report !== undefined && compareIdentity(report.identity, identity) === "identical")
      this.#pending.delete(identity.sandboxId);
  }

  /** From now on over this presence; undefined: hold them. */
  use(presence: WorkerPresence | undefined): void {
    this.#presence = presence;
    this.#cancelRetry();
    this.#flush();
  }

  /** One at a time over one presence; a new presence does not wait for what the old one still owes. */
  #flush(): void {
    const presence = this.#presence;
    if (presence === undefined || this.#sendingOver === presence || this.#pending.size === 0) return;
    this.#sendingOver = presence;
    this.#send(presence).then(
      () => {
        this.#ended(presence);
        this.#flush(); // what was added since the last look
      },
      () => {
        this.#ended(presence);
        if (this.#presence !== presence) return;
        this.#cancelRetry = this.#clock.after(this.#retryMs, () => this.#flush());
      },
    );
  }

  async #send(presence: WorkerPresence): Promise<void> {
    for (let report = this.#next(); report !== undefined; report = this.#next()) {
      await presence.report(report);
      const { sandboxId } = report.identity;
      if (this.#pending.get(sandboxId) === report) this.#pending.delete(sandboxId);
      if (this.#presence !== presence) return;
    }
  }

  #ended(presence: WorkerPresence): void {
    if (this.#sendingOver === presence) this.#sendingOver = undefined;
  }

  #next(): WorkerReport | undefined {
    return this.#pending.values().next().value;
  }
}
