// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { readVouchedCertificate, signCertificate, signRetirement } from "./certificate.ts";
import { certificateDigest } from "./digest.ts";
import { claimedKeyId } from "./jws.ts";
import { archiveBundlesLimit, KeyArchive } from "./key-archive.ts";
import { newSigningKey } from "./keys.ts";
import { bundle, certificate, identity, nowSeconds } from "./signed.fixture.ts";

const root = newSigningKey();
const [old, next] = [newSigningKey(), newSigningKey()];
const bundles = [bundle(root, 1, [old]), bundle(root, 3, [next]), bundle(root, 2, [old, next])];

it("R-10: an archive knows every key that the root vouched for, and which of them count now", () => {
  const archive = KeyArchive.fromBundles(bundles, root.publicKey);
  for (const { kid } of [old, next]) assert.notEqual(archive.find(kid), undefined);
  assert.deepEqual([archive.newest.version, archive.newest.find(old.kid)], [3, undefined]);
  assert.notEqual(archive.newest.find(next.kid), undefined);
  assert.equal(archive.bundleOf(old.kid), bundles[0], "the first that held it, for ever the same");
  assert.equal(archive.bundleOf(newSigningKey().kid), undefined);
  assert.equal(KeyArchive.fromBundles([], root.publicKey).newest.version, 0);
});

it("R-10: an archive takes nobody else's bundle, no version twice, and not without end", () => {
  const refused = { code: "bundle/refused" };
  const other = bundle(newSigningKey(), 4, [old]);
  assert.throws(() => KeyArchive.fromBundles([...bundles, other], root.publicKey), refused);
  const second = bundle(root, 3, [old]);
  assert.throws(() => KeyArchive.fromBundles([...bundles, second], root.publicKey), refused);
  const many = new Array<string>(archiveBundlesLimit + 1).fill("");
  assert.throws(() => KeyArchive.fromBundles(many, root.publicKey), refused);
});

it("R-5: a certificate that is vouched for by its digest is read whoever signed it, and nothing else is", () => {
  const signed = certificate({ key: newSigningKey() });
  const token = signCertificate(old, signed);
  assert.deepEqual(readVouchedCertificate(token, certificateDigest(token)), signed);
  const other = signCertificate(next, signed);
  assert.throws(() => readVouchedCertificate(other, certificateDigest(token)), {
    code: "certificate/refused",
  });
  const retirement = signRetirement(old, { identity: identity(1), issuedAtSeconds: nowSeconds });
  for (const text of [retirement, "", "a.b.c", `${token}x`, "x".repeat(5000)]) {
    assert.throws(
      () => readVouchedCertificate(text, certificateDigest(text)),
      { code: "certificate/refused", details: { problem: "form" } },
      text.slice(0, 20),
    );
  }
});

it("R-10: the key that a token claims is read from a header of the one form, and from no other", () => {
  assert.equal(claimedKeyId(signCertificate(old, certificate({ key: old }))), old.kid);
  const header = (text: string): string => `${Buffer.from(text).toString("base64url")}.e30.x`;
  for (const text of [
    "",
    "cap 0 1",
    header(`{"alg":"none","typ":"a","kid":"${old.kid}"}`),
    header(`{"alg":"EdDSA","typ":"a","kid":"short"}`),
    header(`{"alg":"EdDSA","typ":"a","kid":"${old.kid}","x":1}`),
    header("{}"),
  ]) {
    assert.equal(claimedKeyId(text), undefined, text);
  }
});
