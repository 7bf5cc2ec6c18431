// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type Clock,
  type PendingSideEffect,
  type SandboxId,
  type SandboxStore,
  type SideEffect,
  SpaceError,
  type WorkerDirectory,
  type WorkerId,
} from "@space/model";
import { codeOf } from "./failures.ts";
import type { ControlLimits } from "./limits.ts";
import type { Signer } from "./signer.ts";

export interface WorkerOrderPorts {
  readonly sandboxes: SandboxStore;
  readonly workers: WorkerDirectory;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly limits: ControlLimits;
}

/** Most orders that are sent before an activation on the same worker. A sandbox has a handful at worst. */
const flushLimit = 100;

/** Brings what is in the outbox to the workers: again and again until each has confirmed it. */
export class WorkerOrders {
  readonly #ports: WorkerOrderPorts;
  readonly #sending = new Map<number, Promise<boolean>>();
  readonly #settling = new Set<Promise<boolean>>();

  constructor(ports: WorkerOrderPorts) {
    this.#ports = ports;
  }

  /** Sends each, in order. Whether every one was confirmed; the others stay in the outbox. Never rejects. */
  async deliver(orders: readonly PendingSideEffect[]): Promise<boolean> {
    let confirmed = true;
    for (const order of orders) confirmed = (await this.#deliverOnce(order)) && confirmed;
    return confirmed;
  }

  /** Sends what is due for a sandbox on a worker. Whether nothing is left. */
  async flush(workerId: WorkerId, sandboxId: SandboxId): Promise<boolean> {
    return this.deliver(await this.#ports.sandboxes.pending({ workerId, sandboxId, limit: flushLimit }));
  }

  /** Sends what may be tried now on a connected worker. */
  async deliverDue(workerId: WorkerId): Promise<void> {
    const { sandboxes, clock, limits } = this.#ports;
    const due = await sandboxes.pending({ workerId, dueMs: clock.wallMs(), limit: limits.batch });
    await this.deliver(due);
  }

  /** Writes orders without a change of state; they are on their way when it resolves. Throws `store/failed`. */
  async enqueue(effects: readonly SideEffect[]): Promise<void> {
    void this.deliver(await this.#ports.sandboxes.enqueue(effects));
  }

  /** Resolves when nothing is being sent any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#sending.values());
    await Promise.all(this.#settling);
  }

  /** Two who deliver the same order at once send it once. */
  #deliverOnce(order: PendingSideEffect): Promise<boolean> {
    const sending = this.#sending.get(order.id);
    if (sending !== undefined) return sending;
    const started = this.#deliverOne(order).finally(() => this.#sending.delete(order.id));
    this.#sending.set(order.id, started);
    return started;
  }

  async #deliverOne(order: PendingSideEffect): Promise<boolean> {
    try {
      await this.#send(order.effect);
      this.#settle(order.id);
      return true;
    } catch (error) {
      await this.#postpone(order, error);
      return false;
    }
  }

  /**
   * Not waited for, so that it shares a commit with what the caller writes next. Writes are made in order: nothing that
   * is written later is durable before it. Where it fails the order is given once more.
   */
  #settle(id: number): void {
    const settled = this.#ports.sandboxes.settle(id).then(
      () => true,
      () => false,
    );
    this.#settling.add(settled);
    void settled.then(() => this.#settling.delete(settled));
  }

  async #send(effect: SideEffect): Promise<void> {
    const { workers, signer } = this.#ports;
    const { workerId } = addressOf(effect);
    const worker = workers.find(workerId);
    if (worker === undefined) throw new SpaceError("worker/unreachable", { workerId });
    switch (effect.kind) {
      case "retire":
        return worker.control.retire(signer.retirement(effect.identity), effect.keepFrozen);
      case "discard":
        return worker.control.discard(effect.sandboxId);
    }
  }

  async #postpone({ id, effect, attempts }: PendingSideEffect, error: unknown): Promise<void> {
    const { sandboxes, workers, clock, audit, limits } = this.#ports;
    const { workerId, sandboxId } = addressOf(effect);
    audit.record("order/undelivered", { workerId, sandboxId, order: effect.kind, code: codeOf(error) });
    if (workers.find(workerId) === undefined) return; // tried when it says hello
    const waitMs = Math.min(limits.retryFirstMs * 2 ** Math.min(attempts, 20), limits.retryLongestMs);
    try {
      await sandboxes.postpone(id, clock.wallMs() + waitMs);
    } catch {
      /* the order stays due, and the next tick meets the same store */
    }
  }
}

function addressOf(effect: SideEffect): { readonly workerId: WorkerId; readonly sandboxId: SandboxId } {
  switch (effect.kind) {
    case "retire":
      return { workerId: effect.identity.placement.workerId, sandboxId: effect.identity.sandboxId };
    case "discard":
      return { workerId: effect.workerId, sandboxId: effect.sandboxId };
  }
}
