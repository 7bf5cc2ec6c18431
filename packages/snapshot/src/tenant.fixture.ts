// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import {
  type Digest,
  isSpaceError,
  parseDigest,
  parseTenantId,
  parseTenantKeyId,
  type Random,
  Secret,
  type TenantKey,
} from "@space/model";

/** The same bytes for the same seed. */
export function seeded(seed: string): Random {
  let counter = 0;
  return {
    bytes(length) {
      const blocks: Buffer[] = [];
      for (let have = 0; have < length; have += 64) {
        blocks.push(Buffer.from(hash("sha512", `${seed} ${counter}`, "hex"), "hex"));
        counter += 1;
      }
      return new Uint8Array(Buffer.concat(blocks).subarray(0, length));
    },
  };
}

/** A key of its own for each letter. */
export function tenantKey(letter: string): TenantKey {
  return {
    tenantId: parseTenantId(`ten_${letter.repeat(16)}`),
    keyId: parseTenantKeyId(`tky_${letter.repeat(26)}`),
    secret: new Secret(seeded(`tenant ${letter}`).bytes(32)),
  };
}

export function sha256(content: Uint8Array): Digest {
  return parseDigest(hash("sha256", content, "hex"));
}

export function code(expected: string): (error: unknown) => boolean {
  return (error) => isSpaceError(error) && error.code === expected;
}
