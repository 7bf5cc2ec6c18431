// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Wycheproof's Ed25519 cases, from beside the repository when they are there.

import assert from "node:assert/strict";
import { verify } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { it } from "node:test";
import { importPublicKey } from "@space/capability";
import { isSpaceError } from "@space/model";

interface WycheproofFile {
  readonly algorithm: string;
  readonly numberOfTests: number;
  readonly testGroups: readonly {
    readonly publicKey: { readonly pk: string };
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly msg: string;
      readonly sig: string;
      readonly result: "valid" | "invalid";
    }[];
  }[];
}

const path = resolve(import.meta.dirname, "../../../../shared/vectors/ed25519_test.json");
const skip = existsSync(path) ? false : "no ../shared/vectors";

/** The way a token's signature is checked: a raw public key, exactly 64 bytes, node:crypto. */
function accepts(rawKeyHex: string, message: Buffer, signature: Buffer): boolean {
  try {
    const key = importPublicKey(Buffer.from(rawKeyHex, "hex").toString("base64url"));
    return signature.length === 64 && verify(null, message, key, signature);
  } catch (error) {
    if (isSpaceError(error, "input/invalid")) return false;
    throw error;
  }
}

it("R-6: agrees with Wycheproof on every Ed25519 case", { skip }, () => {
  const file = JSON.parse(readFileSync(path, "utf8")) as WycheproofFile;
  assert.equal(file.algorithm, "EDDSA");
  const counts = { valid: 0, invalid: 0 };
  for (const { publicKey, tests } of file.testGroups) {
    for (const { tcId, comment, msg, sig, result } of tests) {
      const accepted = accepts(publicKey.pk, Buffer.from(msg, "hex"), Buffer.from(sig, "hex"));
      assert.equal(accepted, result === "valid", `case ${tcId}: ${comment}`);
      counts[result] += 1;
    }
  }
  assert.equal(counts.valid + counts.invalid, file.numberOfTests);
  assert.ok(counts.valid > 0 && counts.invalid > 0);
});
