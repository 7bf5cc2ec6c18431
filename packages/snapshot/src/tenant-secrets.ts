// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac, hkdfSync } from "node:crypto";
import type { Digest, TenantKey } from "@space/model";
import { livePlace } from "./places.ts";

const keyBytes = 32;
const noSalt = Buffer.alloc(0);

/**
 * What follows from one tenant key: names, keys of chunks, and where archives are cut. Equal content of one tenant has
 * equal names and cuts; nothing of it can be linked to another tenant's, or to what is known, without the key.
 */
export class TenantSecrets {
  readonly #names: Uint8Array;
  readonly #contents: Uint8Array;
  readonly #cuts: Uint8Array;
  #table: Int32Array | undefined;

  constructor({ tenantId, keyId, secret }: TenantKey) {
    const context = `space snapshot 1 ${tenantId} ${keyId}`;
    const roots = Buffer.from(hkdfSync("sha256", secret.reveal(), noSalt, context, 3 * keyBytes));
    this.#names = roots.subarray(0, keyBytes);
    this.#contents = roots.subarray(keyBytes, 2 * keyBytes);
    this.#cuts = roots.subarray(2 * keyBytes);
  }

  /** The name in the store of what has this digest: HMAC-SHA-256, hexadecimal. */
  name(digest: Digest): string {
    return createHmac("sha256", this.#names).update(Buffer.from(digest, "hex")).digest("hex");
  }

  /** The key that seals what has this digest, and nothing else. */
  chunkKey(digest: Digest): Uint8Array {
    return new Uint8Array(hkdfSync("sha256", this.#contents, noSalt, Buffer.from(digest, "hex"), keyBytes));
  }

  /** 256 random words for the rolling hash: whoever does not know them can neither guess nor choose the cuts. */
  get cutTable(): Int32Array {
    this.#table ??= tableFrom(this.#cuts);
    return this.#table;
  }
}

function tableFrom(seed: Uint8Array): Int32Array {
  const bytes = Buffer.from(hkdfSync("sha256", seed, noSalt, "cut table", 256 * 4));
  return Int32Array.from({ length: 256 }, (_, at) => bytes.readInt32LE(at * 4));
}

/** The key in the store of what has this digest, sealed with this key of a tenant, unless a collector has put it aside. */
export function placeOf(key: TenantKey, digest: Digest): string {
  return livePlace(key, new TenantSecrets(key).name(digest));
}
