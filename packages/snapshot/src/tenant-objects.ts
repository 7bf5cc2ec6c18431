// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ByteStore,
  type ChunkPeers,
  type Digest,
  isSpaceError,
  type KeyScope,
  type ObjectStore,
  type Random,
  SpaceError,
  type TenantKey,
} from "@space/model";
import { digestOf } from "./byte-work.ts";
import type { KnownNames } from "./known-names.ts";
import { condemnedPrefix, livePlace, nameIn } from "./places.ts";
import { openChunk, sealChunk, sealedLimitBytes } from "./sealed-chunk.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

export interface TenantObjectPorts extends ChunkPeers {
  readonly store: ByteStore;
  readonly random: Random;
  readonly known: KnownNames;
}

/**
 * Sealed content of one tenant, by the digests of what is inside. What is there already is not stored again, but is read
 * and verified the first time that this process relies on it: a damaged one is replaced.
 */
export class TenantObjects implements ObjectStore {
  readonly secrets: TenantSecrets;
  readonly #scope: KeyScope;
  readonly #ports: TenantObjectPorts;
  /** Of content that is being stored now, so that equal chunks of one archive are stored once. */
  readonly #storing = new Map<string, Promise<void>>();

  constructor(key: TenantKey, ports: TenantObjectPorts) {
    this.secrets = new TenantSecrets(key);
    this.#scope = { tenantId: key.tenantId, keyId: key.keyId };
    this.#ports = ports;
  }

  async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    if ((await digestOf(bytes)) !== digest)
      throw new SpaceError("snapshot/refused", { problem: "bytes are not the digest's" });
    await this.putDigested(digest, bytes);
  }

  /** As {@link put}, for who has just made the digest of these bytes. */
  async putDigested(digest: Digest, bytes: Uint8Array): Promise<void> {
    const name = this.secrets.name(digest);
    const running = this.#storing.get(name);
    if (running !== undefined) return running;
    const storing = this.#store({ digest, name }, bytes).finally(() => this.#storing.delete(name));
    this.#storing.set(name, storing);
    return storing;
  }

  async get(digest: Digest): Promise<Uint8Array> {
    const name = this.secrets.name(digest);
    const nearer = await this.#getNearer(digest, name);
    if (nearer !== undefined) return nearer;
    const stored = await this.#read(name);
    if (stored === undefined) throw new SpaceError("snapshot/missing", { digest: name });
    return openChunk(stored, { digest, name }, this.secrets);
  }

  /** Whoever gave it: nothing is taken that does not open as this very chunk (the store is asked then). */
  async #getNearer(digest: Digest, name: string): Promise<Uint8Array | undefined> {
    const { source } = this.#ports;
    const given = await source?.get(name);
    if (given === undefined) return undefined;
    const content = await openChunk(given, { digest, name }, this.secrets).catch(damagedAsUndefined);
    if (content === undefined) source?.refuse(name);
    return content;
  }

  /** By its name alone, also where it is condemned. */
  async has(digest: Digest): Promise<boolean> {
    const name = this.secrets.name(digest);
    return (await this.#find(name, (place) => this.#has(place))) === true;
  }

  async keeps(digest: Digest): Promise<boolean> {
    const name = this.secrets.name(digest);
    return this.#isIntact({ digest, name }, livePlace(this.#scope, name));
  }

  /** Only a living chunk counts: one that is condemned may be gone by the time that the manifest is committed. */
  async #store(id: { readonly digest: Digest; readonly name: string }, bytes: Uint8Array): Promise<void> {
    const { store, random, known, sink } = this.#ports;
    const place = livePlace(this.#scope, id.name);
    const sealing = { secrets: this.secrets, random };
    if (await this.#isIntact(id, place)) {
      // Sealed once more, and not compressed: cheaper than to read it from the store.
      if (sink?.wants(bytes.length) === true)
        sink.add(id.name, await sealChunk(bytes, id, { ...sealing, isPlain: true }));
      return;
    }
    const sealed = await sealChunk(bytes, id, sealing);
    await store.put(place, sealed);
    known.add(place);
    if (sink?.wants(sealed.length) === true) sink.add(id.name, sealed);
  }

  async #isIntact(id: { readonly digest: Digest; readonly name: string }, place: string): Promise<boolean> {
    const { store, known } = this.#ports;
    if (known.has(place)) return store.has(place);
    const stored = await this.#bytesAt(place, id.name).catch(damagedAsUndefined);
    if (stored === undefined) return false;
    const content = await openChunk(stored, id, this.secrets).catch(damagedAsUndefined);
    if (content === undefined) return false;
    known.add(place);
    return true;
  }

  #read(name: string): Promise<Uint8Array | undefined> {
    return this.#find(name, (place) => this.#bytesAt(place, name));
  }

  async #bytesAt(place: string, name: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#ports.store.get(place, sealedLimitBytes);
    } catch (cause) {
      if (!isSpaceError(cause, "input/too-large")) throw cause;
      throw new SpaceError("chunk/damaged", { name }, { cause });
    }
  }

  async #has(place: string): Promise<true | undefined> {
    return (await this.#ports.store.has(place)) || undefined;
  }

  /** A chunk that the collector has put aside, and not yet back, is read where it waits. */
  async #find<T>(name: string, look: (place: string) => Promise<T | undefined>): Promise<T | undefined> {
    const live = livePlace(this.#scope, name);
    const found = await look(live);
    if (found !== undefined) return found;
    for await (const { key } of this.#ports.store.list(condemnedPrefix(this.#scope))) {
      const waiting = nameIn(key) === name ? await look(key) : undefined;
      if (waiting !== undefined) return waiting;
    }
    return look(live); // it may have been put back since
  }
}

/** What is damaged is stored again. What the store cannot answer is a failure. */
function damagedAsUndefined(error: unknown): undefined {
  const isDamage = isSpaceError(error) && error.code.startsWith("chunk/");
  if (!isDamage) throw error;
}
