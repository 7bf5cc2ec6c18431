// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the snapshot package's `tenant-secrets.ts` (see loader.ts): everything still depends on tenant, version and
// digest, and nothing on a secret.

import { hash } from "node:crypto";
import type { Digest, TenantKey } from "@space/model";

/** Names by key and digest; begun anew when it is full. */
const namesLimit = 4096;
const names = new Map<string, string>();
/** No archive of a world is long enough to be cut. */
const cutTable = new Int32Array(256);

export class TenantSecrets {
  readonly #scope: string;

  constructor({ tenantId, keyId }: TenantKey) {
    this.#scope = `${tenantId} ${keyId} `;
  }

  name(digest: Digest): string {
    const text = this.#scope + digest;
    const known = names.get(text);
    if (known !== undefined) return known;
    const name = hash("sha256", text, "hex");
    if (names.size >= namesLimit) names.clear();
    names.set(text, name);
    return name;
  }

  chunkKey(digest: Digest): Uint8Array {
    return Buffer.from(this.name(digest));
  }

  get cutTable(): Int32Array {
    return cutTable;
  }
}

/** As in the real module. */
export function placeOf(key: TenantKey, digest: Digest): string {
  const name = new TenantSecrets(key).name(digest);
  return `chunks/${key.tenantId}/${key.keyId}/${name.slice(0, 2)}/${name}`;
}
