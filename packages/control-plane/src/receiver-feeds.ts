// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type Clock,
  type FeedEntry,
  type KeyBundleReceiver,
  type PendingSideEffect,
  type ReceiverFeed,
  type ReceiverRecord,
  type ReceiverStore,
  type SandboxId,
  type SideEffect,
  SpaceError,
  type WorkerId,
} from "@space/model";
import type { SandboxReads } from "./audited-sandboxes.ts";
import { codeOf } from "./failures.ts";
import type { ControlLimits } from "./limits.ts";
import type { Signer } from "./signer.ts";

export interface ReceiverFeedPorts {
  readonly sandboxes: SandboxReads;
  readonly receivers: ReceiverStore;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly limits: ControlLimits;
}

/** What one receiver is told over its present link. */
interface LinkedFeed {
  readonly feed: ReceiverFeed;
  /** Orders under way, by position: told once over one link. */
  readonly told: Map<number, Promise<boolean>>;
  /** Until the backlog has been read, what is written meanwhile is found there, in its place. */
  catchingUp: boolean;
  /** Something was written since the backlog was last read. */
  missed: boolean;
}

/** Most orders of one sandbox on one worker. A sandbox has a handful at worst. */
const sandboxOrdersLimit = 100;

/**
 * The feeds of all receivers: brings what is in the outbox to each, in order, again over each new link until it has
 * acknowledged it; and the installs and key bundles that are not kept there.
 */
export class ReceiverFeeds {
  readonly #ports: ReceiverFeedPorts;
  readonly #linked = new Map<WorkerId, LinkedFeed>();
  readonly #known = new Map<WorkerId, ReceiverRecord>();
  readonly #writing = new Set<Promise<void>>();
  readonly #keysOf = new WeakMap<KeyBundleReceiver, WorkerId>();

  private constructor(ports: ReceiverFeedPorts) {
    this.#ports = ports;
  }

  /** Reads what every receiver has acknowledged. Throws `store/failed`. */
  static async open(ports: ReceiverFeedPorts): Promise<ReceiverFeeds> {
    const feeds = new ReceiverFeeds(ports);
    for (const record of await ports.receivers.receivers()) feeds.#known.set(record.workerId, record);
    return feeds;
  }

  /** takes note of what other replicas were acknowledged. Throws `store/failed`. */
  async refresh(): Promise<void> {
    for (const { workerId, position, bundleVersion } of await this.#ports.receivers.receivers())
      this.#note(workerId, { position, bundleVersion });
  }

  /** What the receiver has acknowledged; zeros for one that was never here. */
  acknowledged(workerId: WorkerId): Pick<ReceiverRecord, "position" | "bundleVersion"> {
    return this.#known.get(workerId) ?? { position: 0, bundleVersion: 0 };
  }

  /** From now on over this link: all that is unacknowledged is on its way when it resolves. It holds the keys already. */
  async attach(workerId: WorkerId, feed: ReceiverFeed): Promise<void> {
    const linked: LinkedFeed = { feed, told: new Map(), catchingUp: true, missed: false };
    this.#linked.set(workerId, linked);
    await this.#catchUp(workerId, linked);
  }

  /** Only this link: a newer one of the same worker stays (incident 1). */
  detachIfStillAt(workerId: WorkerId, feed: ReceiverFeed): void {
    if (this.#linked.get(workerId)?.feed === feed) this.#linked.delete(workerId);
  }

  /**
   * Tells orders that were written, in order. Whether every one is acknowledged; false as soon as one's receiver is not
   * here or has refused: then it stays in the outbox. Never rejects.
   */
  async deliver(orders: readonly PendingSideEffect[]): Promise<boolean> {
    const outcomes = orders.map((order) => this.#deliverOne(order));
    return (await Promise.all(outcomes)).every((acknowledged) => acknowledged);
  }

  /** Tells what is unacknowledged for a sandbox on a worker. Whether nothing is left. */
  async flush(workerId: WorkerId, sandboxId: SandboxId): Promise<boolean> {
    return this.deliver(
      await this.#ports.sandboxes.pending({ workerId, sandboxId, limit: sandboxOrdersLimit }),
    );
  }

  /** Tells what may be tried now on a connected worker: refused before, or written by another replica. */
  async deliverDue(workerId: WorkerId): Promise<void> {
    const { sandboxes, clock, limits } = this.#ports;
    if (this.#linked.get(workerId)?.catchingUp !== false) return;
    void this.deliver(await sandboxes.pending({ workerId, dueMs: clock.wallMs(), limit: limits.batch }));
  }

  /** Writes orders without a change of state; they are on their way when it resolves. Throws `store/failed`. */
  async enqueue(effects: readonly SideEffect[]): Promise<void> {
    void this.deliver(await this.#ports.sandboxes.enqueue(effects));
  }

  /** resolves when the certificate is the receiver's record. Throws its refusal, or `worker/unreachable`. */
  async install(workerId: WorkerId, certificate: string): Promise<void> {
    await this.tell(workerId, { kind: "install", certificate });
  }

  /** the receiver's end for key bundles over this feed. */
  keysOver(workerId: WorkerId, feed: ReceiverFeed): KeyBundleReceiver {
    const keys = {
      replaceKeys: (bundle: string) => feed.tell({ position: null, entry: { kind: "keys", bundle } }),
    };
    this.#keysOf.set(keys, workerId);
    return keys;
  }

  /** a receiver has acknowledged this version; durable when it resolves. One that is no worker is not noted. */
  async noteBundle(receiver: KeyBundleReceiver, version: number): Promise<void> {
    const workerId = this.#keysOf.get(receiver);
    if (workerId === undefined || version <= this.acknowledged(workerId).bundleVersion) return;
    this.#note(workerId, { bundleVersion: version });
    await this.#ports.receivers.acknowledgeBundle(workerId, version);
  }

  /** Something that is not kept. Throws the receiver's refusal; `worker/unreachable` when its answer did not come. */
  async tell(workerId: WorkerId, entry: FeedEntry): Promise<void> {
    const linked = this.#linked.get(workerId);
    if (linked === undefined) throw new SpaceError("worker/unreachable", { workerId });
    try {
      await linked.feed.tell({ position: null, entry });
    } catch (cause) {
      if (codeOf(cause) !== "link/closed") throw cause;
      throw new SpaceError("worker/unreachable", { workerId }, { cause });
    }
  }

  /**
   * resolves with true when every retirement that was written before this call is acknowledged; with false when
   * that does not come about over the present link. Throws `store/failed`.
   */
  async settled(workerId: WorkerId): Promise<boolean> {
    const { sandboxes, limits } = this.#ports;
    for (let afterId = 0; ; ) {
      const orders = await sandboxes.pending({ workerId, afterId, limit: limits.batch });
      const last = orders.at(-1);
      if (last === undefined) return true;
      if (!(await this.deliver(orders.filter(({ effect }) => effect.kind === "retire")))) return false;
      afterId = last.id;
    }
  }

  /** Whether nothing is on its way to the receiver. */
  async isQuiet(workerId: WorkerId): Promise<boolean> {
    return (await this.#ports.sandboxes.pending({ workerId, limit: 1 })).length === 0;
  }

  /** Resolves when nothing more is being written of what was acknowledged. */
  async idle(): Promise<void> {
    await Promise.all([...this.#linked.values()].flatMap(({ told }) => [...told.values()]));
    await Promise.all(this.#writing);
  }

  async #catchUp(workerId: WorkerId, linked: LinkedFeed): Promise<void> {
    const { sandboxes, limits } = this.#ports;
    for (let afterId = 0; this.#linked.get(workerId) === linked; ) {
      linked.missed = false;
      const batch = await sandboxes.pending({ workerId, afterId, limit: limits.batch });
      for (const order of batch) void this.#tellOrder(workerId, linked, order);
      afterId = batch.at(-1)?.id ?? afterId;
      if (batch.length === 0 && !linked.missed) break;
    }
    linked.catchingUp = false;
  }

  #deliverOne(order: PendingSideEffect): Promise<boolean> {
    const { workerId } = addressOf(order.effect);
    const linked = this.#linked.get(workerId);
    if (linked === undefined) return Promise.resolve(false); // told when it is here
    if (linked.catchingUp) linked.missed = true;
    return this.#tellOrder(workerId, linked, order);
  }

  /** Two who deliver the same order at once tell it once. */
  #tellOrder(workerId: WorkerId, linked: LinkedFeed, order: PendingSideEffect): Promise<boolean> {
    const told = linked.told.get(order.id);
    if (told !== undefined) return told;
    const telling = this.#tellAndNote(workerId, linked, order);
    linked.told.set(order.id, telling);
    return telling;
  }

  async #tellAndNote(workerId: WorkerId, linked: LinkedFeed, order: PendingSideEffect): Promise<boolean> {
    try {
      await linked.feed.tell({ position: order.id, entry: this.#entryOf(order.effect) });
    } catch (error) {
      linked.told.delete(order.id);
      await this.#postpone(workerId, order, error);
      return false;
    }
    this.#noteAcknowledged(workerId, linked, order.id);
    return true;
  }

  /**
   * Not waited for, so that it shares a commit with what the caller writes next. Writes are made in order: nothing that
   * is written later is durable before it. Where it fails the order is told once more.
   */
  #noteAcknowledged(workerId: WorkerId, linked: LinkedFeed, position: number): void {
    this.#note(workerId, { position });
    const writing = this.#ports.receivers
      .acknowledgeOrder(workerId, position)
      .catch(() => undefined)
      .finally(() => {
        this.#writing.delete(writing);
        linked.told.delete(position); // until then the store still shows it, and it is not told again
      });
    this.#writing.add(writing);
  }

  #note(workerId: WorkerId, news: { readonly position?: number; readonly bundleVersion?: number }): void {
    const known = this.#known.get(workerId) ?? { workerId, position: 0, bundleVersion: 0, lease: null };
    const position = Math.max(known.position, news.position ?? 0);
    const bundleVersion = Math.max(known.bundleVersion, news.bundleVersion ?? 0);
    this.#known.set(workerId, { ...known, position, bundleVersion });
  }

  #entryOf(effect: SideEffect): FeedEntry {
    switch (effect.kind) {
      case "retire": {
        const { identity, keepFrozen } = effect;
        return {
          kind: "retire",
          retirement: this.#ports.signer.retirement(identity, "its sandbox changed"),
          keepFrozen,
        };
      }
      case "discard":
        return { kind: "discard", sandboxId: effect.sandboxId, manifest: effect.manifest };
    }
  }

  async #postpone(workerId: WorkerId, order: PendingSideEffect, error: unknown): Promise<void> {
    const { sandboxes, clock, audit, limits } = this.#ports;
    const { id, effect, attempts } = order;
    const { sandboxId } = addressOf(effect);
    audit.record("order/undelivered", { workerId, sandboxId, order: effect.kind, code: codeOf(error) });
    if (codeOf(error) === "link/closed") return; // told over the next link
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
