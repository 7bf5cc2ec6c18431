// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, KeyBundleReceiver, StoredKeyBundle, WorkerHandle } from "@space/model";
import type { ConnectedWorkers } from "./connected-workers.ts";
import type { Leases } from "./leases.ts";
import type { ControlLimits } from "./limits.ts";
import type { ReceiverFeeds } from "./receiver-feeds.ts";
import { within } from "./transitions.ts";

export type ReceiverKind = "gateway" | "worker";

/** brings verification bundles to those who verify. */
export interface BundleReceivers {
  /**
   * Offers the bundle to every receiver of the kind that does not hold it yet. Whether each that is leased has made it
   * durable; false also when one is away and its lease has not run out. Safe to repeat. Throws `store/failed`.
   */
  deliver(kind: ReceiverKind, bundle: StoredKeyBundle): Promise<boolean>;
}

export interface ReceiverPorts {
  readonly workers: ConnectedWorkers;
  readonly leases: Leases;
  readonly feeds: ReceiverFeeds;
  readonly clock: Clock;
  readonly limits: Pick<ControlLimits, "confirmMs">;
}

/** The gateways that were attached, and the workers that are connected or were until just now. */
export class ConnectedReceivers implements BundleReceivers {
  readonly #ports: ReceiverPorts;
  readonly #gateways = new Set<KeyBundleReceiver>();
  readonly #held = new WeakMap<KeyBundleReceiver, number>();

  constructor(ports: ReceiverPorts) {
    this.#ports = ports;
  }

  /** Rejects with what the gateway throws. The returned function takes it out again: it holds nothing any more. */
  async addGateway(gateway: KeyBundleReceiver, newest: () => StoredKeyBundle): Promise<() => void> {
    await this.bringUpToDate(gateway, newest);
    this.#gateways.add(gateway);
    return () => void this.#gateways.delete(gateway);
  }

  /**
   * Gives a receiver that nobody delivers to yet what is newest. When this resolves, and until the caller waits for
   * anything else, it holds that: no key has begun to sign meanwhile that it has not heard of.
   */
  async bringUpToDate(receiver: KeyBundleReceiver, newest: () => StoredKeyBundle): Promise<void> {
    let held = this.#held.get(receiver) ?? 0;
    while (held < newest().version) {
      const { version, token } = newest();
      await receiver.replaceKeys(token);
      await this.#note(receiver, version);
      held = version;
    }
  }

  async #note(receiver: KeyBundleReceiver, version: number): Promise<void> {
    this.#held.set(receiver, version);
    await this.#ports.feeds.noteBundle(receiver, version);
  }

  async deliver(kind: ReceiverKind, bundle: StoredKeyBundle): Promise<boolean> {
    const receivers = kind === "gateway" ? [...this.#gateways] : this.#ports.workers.all().map(keysOf);
    const confirmed = await Promise.all(receivers.map((receiver) => this.#give(receiver, bundle)));
    return confirmed.every(Boolean) && (kind === "gateway" || !(await this.#isOneAway(bundle.version)));
  }

  async #give(receiver: KeyBundleReceiver, { version, token }: StoredKeyBundle): Promise<boolean> {
    if ((this.#held.get(receiver) ?? 0) >= version) return true;
    const { clock, limits } = this.#ports;
    try {
      const taken = receiver.replaceKeys(token).then(() => true as const);
      if ((await within(clock, limits.confirmMs, taken)) === undefined) return false;
      await this.#note(receiver, version);
      return true;
    } catch {
      return false; // offered again at the next round, or its lease runs out
    }
  }

  /** one that is away may go on serving by what it knows, until its lease has run out; or another replica has told it. */
  async #isOneAway(version: number): Promise<boolean> {
    const { workers, leases, feeds } = this.#ports;
    const away = leases.leased().filter((workerId) => workers.find(workerId) === undefined);
    if (away.length > 0) await feeds.refresh();
    return away.some((workerId) => feeds.acknowledged(workerId).bundleVersion < version);
  }
}

function keysOf({ keys }: WorkerHandle): KeyBundleReceiver {
  return keys;
}
