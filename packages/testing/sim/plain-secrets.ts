// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the snapshot package's `tenant-secrets.ts` (see loader.ts): everything still depends on tenant, version and
// digest, and nothing on a secret.

import { hash } from "node:crypto";
import type { Digest, TenantKey } from "@space/model";

/** Names by the digests that one key names; begun anew when there are so many. */
const namesLimit = 4096;
const namesOf = new Map<string, Map<Digest, string>>();

function namesIn(scope: string): Map<Digest, string> {
  const known = namesOf.get(scope);
  if (known !== undefined) return known;
  if (namesOf.size >= namesLimit) namesOf.clear();
  const names = new Map<Digest, string>();
  namesOf.set(scope, names);
  return names;
}

/** No archive of a world is long enough to be cut. */
const cutTable = new Int32Array(256);

export class TenantSecrets {
  readonly #scope: string;
  readonly #names: Map<Digest, string>;

  constructor({ tenantId, keyId }: TenantKey) {
    this.#scope = `${tenantId} ${keyId} `;
    this.#names = namesIn(this.#scope);
  }

  name(digest: Digest): string {
    const known = this.#names.get(digest);
    if (known !== undefined) return known;
    const name = hash("sha256", this.#scope + digest, "hex");
    if (this.#names.size >= namesLimit) this.#names.clear();
    this.#names.set(digest, name);
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
