// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import {
  exportSigningKey,
  importPublicKey,
  importSigningKey,
  keyId,
  keyIdOfText,
  newSigningKey,
  publicKeyText,
} from "./keys.ts";

const refused = (error: unknown): boolean =>
  isSpaceError(error, "input/invalid") && error.cause === undefined;
const fromHex = (hex: string): string => Buffer.from(hex, "hex").toString("base64url");

it("a signing key survives being written and read", () => {
  const key = newSigningKey();
  const pem = exportSigningKey(key);
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----/);
  const back = importSigningKey(pem);
  assert.equal(back.kid, key.kid);
  assert.ok(back.publicKey.equals(key.publicKey));
});

it("a signing key is an Ed25519 private key and nothing else, and a refusal says nothing of the text", () => {
  const rsa = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const publicPem = newSigningKey().publicKey.export({ format: "pem", type: "spki" }).toString();
  for (const pem of ["", "x", publicPem, rsa.export({ format: "pem", type: "pkcs8" }).toString()]) {
    assert.throws(() => importSigningKey(pem), refused);
  }
});

it("a public key survives being written and read", () => {
  const { publicKey, privateKey } = newSigningKey();
  const text = publicKeyText(publicKey);
  assert.equal(text.length, 43);
  assert.ok(importPublicKey(text).equals(publicKey));
  assert.equal(publicKeyText(privateKey), text);
});

it("the text of another kind of key is a bug", () => {
  assert.throws(() => publicKeyText(generateKeyPairSync("x25519").publicKey), TypeError);
  assert.throws(
    () => publicKeyText(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey),
    TypeError,
  );
});

it("R-6: a key id is the RFC 7638 thumbprint, as in RFC 8037 appendix A.3", () => {
  const text = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  assert.equal(keyIdOfText(text), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  assert.equal(keyId(importPublicKey(text)), keyIdOfText(text));
});

it("a public key of another length or form is refused", () => {
  for (const text of [
    "",
    "AA",
    fromHex("02".repeat(31)),
    fromHex("02".repeat(33)),
    `${fromHex("02".repeat(32))}=`,
  ]) {
    assert.throws(() => importPublicKey(text), refused, text);
  }
});

it("a point of small order is refused, with either sign", () => {
  for (const hex of [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  ]) {
    const bytes = Buffer.from(hex, "hex");
    const other = Buffer.from(bytes);
    other.writeUInt8(other.readUInt8(31) | 0x80, 31);
    for (const point of [bytes, other]) {
      assert.throws(() => importPublicKey(point.toString("base64url")), refused, point.toString("hex"));
    }
  }
});

it("RFC 8032: a point with a second encoding is refused", () => {
  for (const first of ["ed", "ee", "f0", "ff"]) {
    for (const last of ["7f", "ff"]) {
      const hex = `${first}${"ff".repeat(30)}${last}`;
      assert.throws(() => importPublicKey(fromHex(hex)), refused, hex);
    }
  }
});
