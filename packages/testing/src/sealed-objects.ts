// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ControlPlanePorts } from "@space/control-plane";
import {
  type Digest,
  type ObjectStore,
  parseTenantId,
  parseTenantKeyId,
  Secret,
  type TenantKey,
} from "@space/model";
import {
  ChunkCollector,
  MemoryByteStore,
  MemoryKeyWrapping,
  placeOf,
  snapshotStore,
  TenantKeys,
} from "@space/snapshot";
import { SeededRandom } from "./seeded-random.ts";

/** The key of a test that plays the control plane. */
export const testTenantKey: TenantKey = {
  tenantId: parseTenantId(`ten_${"t".repeat(16)}`),
  keyId: parseTenantKeyId(`tky_${"k".repeat(26)}`),
  secret: new Secret(new Uint8Array(32).fill(9)),
};

/** Another one of the same tenant. */
export const otherKey: TenantKey = {
  ...testTenantKey,
  keyId: parseTenantKeyId(`tky_${"o".repeat(26)}`),
  secret: new Secret(new Uint8Array(32).fill(8)),
};

/** What a test sees of one tenant's part of a store: plain, and as it lies there. */
export class SealedObjects implements ObjectStore {
  readonly key: TenantKey;
  readonly #store: MemoryByteStore;

  constructor(store: MemoryByteStore, key: TenantKey = testTenantKey) {
    this.key = key;
    this.#store = store;
  }

  put(digest: Digest, bytes: Uint8Array): Promise<void> {
    return this.#opened().put(digest, bytes);
  }

  get(digest: Digest): Promise<Uint8Array> {
    return this.#opened().get(digest);
  }

  keeps(digest: Digest): Promise<boolean> {
    return this.#opened().keeps(digest);
  }

  /** As a process that has verified nothing yet. */
  #opened(): ObjectStore {
    return snapshotStore({ store: this.#store, random: new SeededRandom("test objects") }).open(this.key)
      .objects;
  }

  place(digest: Digest): string {
    return placeOf(this.key, digest);
  }

  has(digest: Digest): boolean {
    return this.#store.held.has(this.place(digest));
  }

  /** Its sealed bytes. Throws where there are none. */
  stored(digest: Digest): Uint8Array {
    const held = this.#store.held.get(this.place(digest));
    if (held === undefined) throw new TypeError("it is not there");
    return held.bytes;
  }

  /** In place of what is there; `undefined` takes it away. Returns how to put things right again. */
  replace(digest: Digest, bytes: Uint8Array | undefined): () => void {
    const { held } = this.#store;
    const place = this.place(digest);
    const before = held.get(place);
    if (bytes === undefined) held.delete(place);
    else held.set(place, { bytes, modifiedMs: before?.modifiedMs ?? 0 });
    return () => {
      if (before === undefined) held.delete(place);
      else held.set(place, before);
    };
  }

  /** One bit of what is there is another. */
  alter(digest: Digest): () => void {
    const altered = Buffer.from(this.stored(digest));
    const at = altered.length - 1;
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    return this.replace(digest, altered);
  }
}

/** How many sealed objects and chunks a store holds. */
export function sealedCount(store: MemoryByteStore): number {
  return [...store.held.keys()].filter((key) => key.startsWith("chunks/")).length;
}

/** For a control plane that pauses nothing. */
export function noSnapshots(): Pick<ControlPlanePorts, "snapshots" | "tenantKeys" | "collector"> {
  const sealing = { store: new MemoryByteStore(), random: new SeededRandom("no snapshots") };
  return {
    snapshots: snapshotStore(sealing),
    tenantKeys: new TenantKeys({ ...sealing, wrapping: new MemoryKeyWrapping() }),
    collector: (references) => new ChunkCollector({ ...sealing, references, clock: { wallMs: () => 0 } }),
  };
}
