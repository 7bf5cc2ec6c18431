// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ByteStore,
  isSpaceError,
  type KeyWrapping,
  newTenantKeyId,
  parseTenantId,
  parseTenantKeyId,
  type Random,
  type Rewrapped,
  Secret,
  SpaceError,
  type TenantId,
  type TenantKey,
  type TenantKeyId,
  type TenantKeyring,
} from "@space/model";

const keyBytes = 32;
/** A wrapped key is some hundred bytes, of whatever provider. */
const wrappedLimitBytes = 16 * 1024;
const rootPrefix = "keys/";
const firstNumber = 1;
const wrapTries = 5;

export interface TenantKeyPorts {
  readonly store: ByteStore;
  readonly wrapping: KeyWrapping;
  readonly random: Random;
}

/** One wrapped key as it lies in the store. */
interface WrappedKey {
  readonly place: string;
  readonly tenantId: TenantId;
  readonly keyId: TenantKeyId;
  /** The versions of one tenant are numbered; the highest seals, all open. */
  readonly number: number;
}

/**
 * The keys of tenants, each wrapped, beside what they seal: whoever has the store and the key-encryption keys can restore
 * everything, and whoever has the store alone nothing. Kept by the control plane; workers get a key for what they do.
 */
export class TenantKeys implements TenantKeyring {
  readonly #ports: TenantKeyPorts;
  /** The first use of a tenant's key: once at a time, so that one process makes one. */
  readonly #making = new Map<TenantId, Promise<TenantKey>>();

  constructor(ports: TenantKeyPorts) {
    this.#ports = ports;
  }

  /** The key that seals this tenant's next snapshot; made, and durable, where there is none. Two processes may each make one: both open. */
  async current(tenantId: TenantId): Promise<TenantKey> {
    const [newest] = await this.#versions(tenantId);
    if (newest !== undefined) return this.#open(newest);
    const running = this.#making.get(tenantId);
    if (running !== undefined) return running;
    const making = this.rotate(tenantId).finally(() => this.#making.delete(tenantId));
    this.#making.set(tenantId, making);
    return making;
  }

  /** The version that a manifest names. Throws `tenant-key/missing`, and what `unwrap` throws. */
  async find(tenantId: TenantId, keyId: TenantKeyId): Promise<TenantKey> {
    const found = (await this.#versions(tenantId)).find((version) => version.keyId === keyId);
    if (found === undefined) throw new SpaceError("tenant-key/missing", { keyId });
    return this.#open(found);
  }

  async tenants(): Promise<readonly TenantId[]> {
    const tenants = new Set<TenantId>();
    for await (const { key } of this.#ports.store.list(rootPrefix)) {
      const version = readPlace(key);
      if (version !== undefined) tenants.add(version.tenantId);
    }
    return [...tenants];
  }

  /** Every version that is left, the newest first: what a collector goes through. */
  async versions(tenantId: TenantId): Promise<readonly TenantKeyId[]> {
    return (await this.#versions(tenantId)).map(({ keyId }) => keyId);
  }

  /** A new version seals from now on. What earlier ones sealed stays readable. */
  async rotate(tenantId: TenantId): Promise<TenantKey> {
    const [newest] = await this.#versions(tenantId);
    const keyId = newTenantKeyId(this.#ports.random);
    const number = newest === undefined ? firstNumber : newest.number + 1;
    const place = `${rootPrefix}${tenantId}/${String(number).padStart(6, "0")}-${keyId}`;
    const secret = new Secret(this.#ports.random.bytes(keyBytes));
    const key = { tenantId, keyId, secret };
    await this.#write({ ...key, place });
    return key;
  }

  /**
   * Wraps every tenant's keys under the newest key-encryption key. The keys themselves, and all that they sealed, stay as they
   * are. It may be interrupted and repeated; when it has ended, what was newest before it began is enough to open all.
   */
  async rewrap(): Promise<Rewrapped> {
    const { store, wrapping } = this.#ports;
    let [rewrapped, kept] = [0, 0];
    for await (const { key: place } of store.list(rootPrefix)) {
      const version = readPlace(place);
      const wrapped = version && (await store.get(place, wrappedLimitBytes));
      if (version === undefined || wrapped === undefined) continue; // not ours, or a tenant that was just removed
      if (await wrapping.isNewest(wrapped)) {
        kept += 1;
        continue;
      }
      const secret = await wrapping.unwrap(wrapped, contextOf(version));
      await this.#write({ ...version, secret });
      rewrapped += 1;
    }
    return { rewrapped, kept };
  }

  /** Nothing of this tenant's snapshots can be read ever again, wherever copies of the chunks are. Not while a `rewrap` runs. */
  async destroy(tenantId: TenantId): Promise<void> {
    for (const { place } of await this.#versions(tenantId)) await this.#ports.store.remove(place);
  }

  /**
   * Wrapped under a key that was still the newest when it was in the store: whoever has made a newer one since then finds it
   * when he wraps all anew, and may forget this one after that.
   */
  async #write(key: TenantKey & { readonly place: string }): Promise<void> {
    const { store, wrapping } = this.#ports;
    for (let tries = 1; tries <= wrapTries; tries += 1) {
      const wrapped = await wrapping.wrap(key.secret, contextOf(key));
      await store.put(key.place, wrapped);
      if (await wrapping.isNewest(wrapped).catch(unknownAsFalse)) return;
    }
    throw new SpaceError("key-wrapping/failed", { step: "the key-encryption key is replaced all the time" });
  }

  async #versions(tenantId: TenantId): Promise<readonly WrappedKey[]> {
    const found: WrappedKey[] = [];
    for await (const { key } of this.#ports.store.list(`${rootPrefix}${tenantId}/`)) {
      const version = readPlace(key);
      if (version !== undefined) found.push(version);
    }
    return found.toSorted((one, other) => (one.place < other.place ? 1 : -1));
  }

  async #open(version: WrappedKey): Promise<TenantKey> {
    const { tenantId, keyId, place } = version;
    const wrapped = await this.#ports.store.get(place, wrappedLimitBytes);
    if (wrapped === undefined) throw new SpaceError("tenant-key/missing", { keyId });
    const secret = await this.#ports.wrapping.unwrap(wrapped, contextOf(version));
    if (secret.reveal().length !== keyBytes)
      throw new SpaceError("key-wrapping/refused", { problem: "not a tenant's key" });
    return { tenantId, keyId, secret };
  }
}

/** A wrapped key opens only as the version of the tenant that it was wrapped for. */
function contextOf({ tenantId, keyId }: Pick<TenantKey, "tenantId" | "keyId">): string {
  return `space tenant key ${tenantId} ${keyId}`;
}

function unknownAsFalse(error: unknown): false {
  if (!isSpaceError(error, "key-wrapping/unknown")) throw error;
  return false;
}

const placeForm = /^keys\/([^/]+)\/(\d{6})-([^/]+)$/;

function readPlace(place: string): WrappedKey | undefined {
  const [, tenant, number, key] = placeForm.exec(place) ?? [];
  if (tenant === undefined || key === undefined) return undefined;
  try {
    return { place, tenantId: parseTenantId(tenant), keyId: parseTenantKeyId(key), number: Number(number) };
  } catch {
    return undefined; // somebody else's object
  }
}
