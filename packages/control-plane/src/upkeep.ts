// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SnapshotCollection } from "./collect-snapshots.ts";
import { codeOf } from "./failures.ts";
import { loseUnleased } from "./lose-unleased.ts";
import type { ControlParts } from "./parts.ts";
import { recoverLost } from "./recover-lost.ts";
import { recoverAbandoned } from "./recovery.ts";
import { TtlReaper } from "./ttl-reaper.ts";

/** What nobody asks for: ends of life, orders that did not arrive, claims that ran out, old tombstones, what is left of snapshots. */
export class Upkeep {
  readonly #parts: ControlParts;
  readonly #reaper: TtlReaper;
  readonly #collection: SnapshotCollection;
  readonly #rounds = new Map<string, { cancel: () => void; running: Promise<void> }>();
  #stopped = false;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.#reaper = new TtlReaper(parts);
    this.#collection = new SnapshotCollection(parts);
  }

  start(): void {
    const { limits, sandboxes, clock, feeds, workers, rotation } = this.#parts;
    this.#every("end of life", limits.reaperTickMs, () => this.#reaper.tick());
    this.#every("orders", limits.orderTickMs, async () => {
      await Promise.all(workers.all().map(({ workerId }) => feeds.deliverDue(workerId)));
    });
    this.#every("leases", limits.leaseTickMs, () => loseUnleased(this.#parts));
    this.#every("recover lost", limits.leaseTickMs, () => recoverLost(this.#parts));
    this.#every("recovery", limits.recoveryTickMs, () => recoverAbandoned(this.#parts));
    this.#every("signing keys", limits.keyTickMs, () => rotation.step());
    this.#every("snapshots", limits.collectTickMs, () => this.#collection.pass(() => this.#stopped));
    this.#every("purge", limits.purgeTickMs, async () => {
      await sandboxes.purge(clock.wallMs() - limits.tombstoneMs, limits.batch);
    });
    this.#every("kept snapshots", limits.purgeTickMs, async () => {
      await sandboxes.purgeKept(clock.wallMs(), limits.batch);
    });
  }

  /** Begins nothing more, and resolves when what was begun has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { cancel } of this.#rounds.values()) cancel();
    await Promise.all([...this.#rounds.values()].map(({ running }) => running));
    await this.#reaper.idle();
  }

  /** One round at a time; the next begins an interval after the last has ended. */
  #every(task: string, intervalMs: number, round: () => Promise<void>): void {
    if (this.#stopped) return;
    const entry = { cancel: (): void => undefined, running: Promise.resolve() };
    entry.cancel = this.#parts.clock.after(intervalMs, () => {
      entry.running = round()
        .catch((error: unknown) => {
          this.#parts.audit.record("upkeep/failed", { task, sandboxId: null, code: codeOf(error) });
        })
        .then(() => this.#every(task, intervalMs, round));
    });
    this.#rounds.set(task, entry);
  }
}
