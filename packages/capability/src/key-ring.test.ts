// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { bundleKeysLimit, KeyRing, signKeyBundle } from "./key-ring.ts";
import { newSigningKey, publicKeyText } from "./keys.ts";
import { bundle, headerText, nowSeconds, signTexts } from "./signed.fixture.ts";

const root = newSigningKey();
const keys = [newSigningKey(), newSigningKey()] as const;
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "bundle/refused") && error.details.problem === problem;
const json = {
  version: 3,
  iat: nowSeconds,
  keys: keys.map(({ kid, publicKey }) => ({ kid, publicKey: publicKeyText(publicKey) })),
};
const signed = (payload: unknown, typ = "space-key-bundle+jwt"): string =>
  signTexts(root, headerText(root, typ), JSON.stringify(payload));

it("R-10: holds the keys of a bundle that the root signed, as key objects that stay the same", () => {
  const ring = KeyRing.fromBundle(bundle(root, 3, keys), root.publicKey);
  assert.equal(ring.version, 3);
  const found = ring.find(keys[0].kid);
  assert.ok(found?.equals(keys[0].publicKey));
  assert.equal(ring.find(keys[0].kid), found);
  assert.equal(ring.find("x"), undefined);
});

it("R-10: a bundle may hold no key, and at most its limit", () => {
  assert.equal(KeyRing.fromBundle(bundle(root, 1, []), root.publicKey).version, 1);
  const many = Array.from({ length: bundleKeysLimit }, () => newSigningKey());
  KeyRing.fromBundle(bundle(root, 1, many), root.publicKey);
  assert.throws(
    () => bundle(root, 1, [...many, newSigningKey()]),
    (error) => isSpaceError(error, "input/invalid"),
  );
});

it("R-10: is never rolled back", () => {
  const token = bundle(root, 3, keys);
  assert.equal(KeyRing.fromBundle(token, root.publicKey, 3).version, 3);
  assert.throws(
    () => KeyRing.fromBundle(token, root.publicKey, 4),
    (error) =>
      isSpaceError(error, "bundle/rollback") && error.details.held === 4 && error.details.offered === 3,
  );
});

it("R-10: is signed by the pinned root and nobody else", () => {
  assert.throws(() => KeyRing.fromBundle(bundle(keys[0], 3, keys), root.publicKey), refused("key"));
  const [header, payload] = signed(json).split(".");
  const forged = `${header}.${payload}.${"A".repeat(86)}`;
  assert.throws(() => KeyRing.fromBundle(forged, root.publicKey), refused("signature"));
});

it("R-10: refuses a bundle that is not of its form", () => {
  const [first] = json.keys;
  const unsafe = Buffer.alloc(32).toString("base64url");
  for (const payload of [
    { ...json, version: 0 },
    { ...json, version: "3" },
    { ...json, iat: -1 },
    { ...json, keys: {} },
    { ...json, x: 1 },
    { ...json, keys: [{ ...first, x: 1 }] },
    { ...json, keys: [{ ...first, kid: "x" }] },
    { ...json, keys: [{ ...first, kid: keys[1].kid }] },
    { ...json, keys: [{ ...first, publicKey: "x" }] },
    { ...json, keys: [{ kid: first?.kid, publicKey: unsafe }] },
  ]) {
    assert.throws(
      () => KeyRing.fromBundle(signed(payload), root.publicKey),
      refused("form"),
      JSON.stringify(payload),
    );
  }
  assert.throws(() => KeyRing.fromBundle(signed(json, "space-cap+jwt"), root.publicKey), refused("form"));
});

it("refuses a bundle that holds a key twice", () => {
  assert.throws(
    () => KeyRing.fromBundle(bundle(root, 1, [keys[0], keys[0]]), root.publicKey),
    refused("repeated key"),
  );
});

it("signs only what a receiver would accept", () => {
  assert.throws(
    () => signKeyBundle(root, { version: 0, issuedAtSeconds: 1, keys: [] }),
    (error) => isSpaceError(error, "input/invalid"),
  );
});
