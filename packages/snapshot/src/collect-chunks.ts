// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  ByteStore,
  Clock,
  Collected,
  KeyScope,
  Random,
  SnapshotCollector,
  SnapshotReferences,
  TenantKey,
} from "@space/model";
import { batchIn, condemnedPlace, condemnedPrefix, livePlace, livePrefix, nameIn } from "./places.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

/** A chunk that is younger may belong to a pause that is not committed yet. Only spares work: the batches keep it safe. */
const defaultGraceMs = 60 * 60 * 1000;
/** Names held at once, of each kind: 100 to 200 bytes each. What is more is gone through in parts, by how the names begin. */
const defaultNamesAtOnce = 200_000;
const hexadecimal = "0123456789abcdef";

export interface CollectorPorts {
  readonly store: ByteStore;
  readonly references: SnapshotReferences;
  readonly clock: Pick<Clock, "wallMs">;
  readonly random: Random;
}

export interface CollectorOptions {
  readonly graceMs?: number;
  readonly namesAtOnce?: number;
}

interface Pass {
  readonly scope: KeyScope;
  readonly secrets: TenantSecrets;
}

/** Chunks that were put aside together, as this process has seen them, with their sizes. */
interface Batch {
  readonly sizes: ReadonlyMap<string, number>;
  /** The pauses that were under way after the last of them had been seen there. */
  readonly awaited: ReadonlySet<string>;
}

/** All needed names with one beginning. */
interface NeededNames {
  readonly beginning: string;
  readonly names: ReadonlySet<string>;
}

/**
 * Removes what no snapshot needs. A chunk is first put aside, where a pause that begins then does not find it and
 * stores it anew. It is removed only when every pause is over that may have found it before, and still nothing needs it; else
 * it is put back. So no order of steps, and no crash between two of them, loses a chunk that a committed manifest names.
 * Several collectors may run at once.
 */
export class ChunkCollector implements SnapshotCollector {
  readonly #ports: CollectorPorts;
  readonly #graceMs: number;
  readonly #namesAtOnce: number;
  readonly #batches = new Map<string, Batch>();

  constructor(ports: CollectorPorts, options: CollectorOptions = {}) {
    this.#ports = ports;
    this.#graceMs = options.graceMs ?? defaultGraceMs;
    this.#namesAtOnce = options.namesAtOnce ?? defaultNamesAtOnce;
  }

  /** One pass over what was sealed with this key. Repeating it is safe at any time. */
  async collect(key: TenantKey): Promise<Collected> {
    const pass = { scope: { tenantId: key.tenantId, keyId: key.keyId }, secrets: new TenantSecrets(key) };
    const settled = await this.#settle(pass);
    return { ...settled, condemned: await this.#condemn(pass) };
  }

  async #settle(pass: Pass): Promise<Omit<Collected, "condemned">> {
    const listed = await this.#listBatches(pass.scope);
    const underWay = await this.#ports.references.underWay(pass.scope); // after the listing: see `Batch.awaited`
    const isOver = new Set<string>();
    for (const [batch, sizes] of listed) if (this.#isOver(batch, sizes, underWay)) isOver.add(batch);
    const keys = [...listed].flatMap(([batch, sizes]) => (isOver.has(batch) ? [...sizes] : []));
    const ended = await this.#end(pass, keys);
    for (const batch of isOver) this.#batches.delete(batch);
    return { ...ended, waiting: listed.size - isOver.size };
  }

  async #listBatches(scope: KeyScope): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
    const listed = new Map<string, Map<string, number>>();
    let count = 0;
    for await (const { key, sizeBytes } of this.#ports.store.list(condemnedPrefix(scope))) {
      const sizes = listed.get(batchIn(key)) ?? new Map<string, number>();
      listed.set(batchIn(key), sizes.set(key, sizeBytes));
      count += 1;
      if (count >= this.#namesAtOnce) break; // the next pass goes on
    }
    return listed;
  }

  /** Another process may still be putting chunks into its batch: whenever there is one more, the waiting begins anew. */
  #isOver(batch: string, sizes: ReadonlyMap<string, number>, underWay: ReadonlySet<string>): boolean {
    const known = this.#batches.get(batch);
    const isKnown = known !== undefined && [...sizes.keys()].every((key) => known.sizes.has(key));
    const awaited = isKnown ? new Set([...known.awaited].filter((pause) => underWay.has(pause))) : underWay;
    this.#batches.set(batch, { sizes, awaited });
    return awaited.size === 0;
  }

  /** What is needed is asked now, when the last pause that may have found these chunks is over. */
  async #end(
    pass: Pass,
    keys: readonly (readonly [string, number])[],
  ): Promise<Pick<Collected, "restored" | "removed" | "removedBytes">> {
    let [restored, removed, removedBytes] = [0, 0, 0];
    if (keys.length === 0) return { restored, removed, removedBytes };
    for await (const { beginning, names } of this.#needed(pass, "")) {
      for (const [key, sizeBytes] of keys) {
        const name = nameIn(key);
        if (!name.startsWith(beginning)) continue;
        if (names.has(name)) {
          restored += 1;
          await this.#restore(pass.scope, key);
        } else {
          removed += 1;
          removedBytes += sizeBytes;
          await this.#ports.store.remove(key);
        }
      }
    }
    return { restored, removed, removedBytes };
  }

  /** Where a later pause has stored it anew, that one stays: the content is the same. */
  async #restore(scope: KeyScope, key: string): Promise<void> {
    const { store } = this.#ports;
    const live = livePlace(scope, nameIn(key));
    if (await store.has(live)) await store.remove(key);
    else await store.move(key, live);
  }

  async #condemn(pass: Pass): Promise<number> {
    const { store, references, clock, random } = this.#ports;
    const batch = Buffer.from(random.bytes(12)).toString("hex");
    const beforeMs = clock.wallMs() - this.#graceMs;
    const sizes = new Map<string, number>();
    for await (const { beginning, names } of this.#needed(pass, "")) {
      for await (const { key, sizeBytes, modifiedMs } of store.list(livePrefix(pass.scope))) {
        const name = nameIn(key);
        const isKept = !name.startsWith(beginning) || names.has(name) || modifiedMs >= beforeMs;
        if (isKept || sizes.size >= this.#namesAtOnce) continue;
        const place = condemnedPlace(pass.scope, batch, name);
        if (await store.move(key, place)) sizes.set(place, sizeBytes);
      }
    }
    if (sizes.size === 0) return 0;
    this.#batches.set(batch, { sizes, awaited: await references.underWay(pass.scope) });
    return sizes.size;
  }

  /** The needed names in parts that are small enough; their beginnings cover every name. */
  async *#needed(pass: Pass, beginning: string): AsyncIterable<NeededNames> {
    const names = new Set<string>();
    for await (const digest of this.#ports.references.needed(pass.scope)) {
      const name = pass.secrets.name(digest);
      if (name.startsWith(beginning)) names.add(name);
      if (names.size > this.#namesAtOnce) {
        for (const digit of hexadecimal) yield* this.#needed(pass, `${beginning}${digit}`);
        return;
      }
    }
    yield { beginning, names };
  }
}
