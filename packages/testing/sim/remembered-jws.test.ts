// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KeyRing as KeyRingType, SigningKey } from "@space/capability";
import { parseSandboxId } from "@space/model";
import { prepareLoading } from "./loader.ts";
import { SimRandom } from "./sim-random.ts";

prepareLoading(undefined);
const { makeKeys } = await import("./stand-in-crypto.ts");
const { KeyRing, certificateDigest, claimedKeyId, newSigningKey, publicKeyText, readVouchedCertificate } =
  await import("@space/capability");
const { signChainHead, signKeyBundle, verifyCertificate, verifyChainHead } = await import(
  "@space/capability"
);
const random = new SimRandom("remembered");

const ringOf = (...keys: readonly SigningKey[]): KeyRingType => {
  const root = newSigningKey();
  const named = keys.map(({ kid, publicKey }) => ({ kid, publicKey: publicKeyText(publicKey) }));
  const token = signKeyBundle(root, { version: 1, issuedAtSeconds: 1, keys: named });
  return KeyRing.fromBundle(token, root.publicKey);
};

const headOf = (key: SigningKey, issuedAtSeconds = 7): string =>
  signChainHead(key, {
    sandboxId: parseSandboxId(`i${"s".repeat(20)}`),
    certificate: certificateDigest("x"),
    manifest: null,
    issuedAtSeconds,
  });

test("R-6: what is signed with a stand-in key is the text that the real function makes with it", async () => {
  makeKeys({ real: false, seed: () => random.bytes(32) });
  const key = newSigningKey();
  const real = await import(new URL("../../capability/src/jws.ts", import.meta.url).href);
  const remembered = await import("./remembered-jws.ts");
  const kind = { typ: "space-test+jwt", limitBytes: 1000, read: (payload: unknown) => payload };
  for (const text of ["", "a", "bytes of \u00fc", "x".repeat(300)])
    assert.deepEqual(remembered.sealToken(kind, key as never, { text }), real.sealToken(kind, key, { text })); // cast: a stand-in
  assert.throws(() => remembered.sealToken(kind, key as never, { text: "x".repeat(1000) }), {
    code: "input/too-large",
  });
});

for (const real of [false, true]) {
  const keys = real ? "real keys" : "stand-in keys";

  test(`R-6: with ${keys} a text says again what it said, and it is the text's own`, () => {
    makeKeys({ real, seed: () => random.bytes(32) });
    const key = newSigningKey();
    const ring = ringOf(key);
    const [one, other] = [headOf(key, 7), headOf(key, 8)];
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(
        [one, other].map((token) => verifyChainHead(token, ring).issuedAtSeconds),
        [7, 8],
      );
      assert.equal(claimedKeyId(one), key.kid);
    }
  });

  test(`R-6: with ${keys} any other byte of a remembered text is refused`, () => {
    makeKeys({ real, seed: () => random.bytes(32) });
    const key = newSigningKey();
    const ring = ringOf(key);
    const token = headOf(key);
    verifyChainHead(token, ring);
    for (let at = 0; at < token.length; at += 1) {
      const letter = token[at] === "A" ? "Q" : "A";
      const altered = `${token.slice(0, at)}${letter}${token.slice(at + 1)}`;
      assert.throws(() => verifyChainHead(altered, ring), { code: "chain/refused" }, `letter ${at}`);
    }
  });

  test(`R-10: with ${keys} a remembered text counts under no ring that lacks its key`, () => {
    makeKeys({ real, seed: () => random.bytes(32) });
    const [key, next] = [newSigningKey(), newSigningKey()];
    const token = headOf(key);
    verifyChainHead(token, ringOf(key, next));
    assert.throws(() => verifyChainHead(token, ringOf(next)), { details: { link: "head", problem: "key" } });
    const posing = { find: () => next.publicKey };
    assert.throws(() => verifyChainHead(token, posing), { details: { link: "head", problem: "signature" } });
  });

  test(`R-6: with ${keys} a remembered text is no statement of another kind`, () => {
    makeKeys({ real, seed: () => random.bytes(32) });
    const key = newSigningKey();
    const ring = ringOf(key);
    const token = headOf(key);
    verifyChainHead(token, ring);
    const refused = { code: "certificate/refused", details: { problem: "form" } };
    assert.throws(() => verifyCertificate(token, ring), refused);
    assert.throws(() => readVouchedCertificate(token, certificateDigest(token)), refused);
  });
}
