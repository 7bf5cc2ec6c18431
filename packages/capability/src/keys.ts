// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from "node:crypto";
import { invalid, parse32Bytes } from "./fields.ts";

/** An Ed25519 key pair that signs. `kid` is the public key's RFC 7638 thumbprint, so that it names one key only. */
export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** A fresh key pair from the process's own secure random source. */
export function newSigningKey(): SigningKey {
  return fromPrivateKey(generateKeyPairSync("ed25519").privateKey);
}

/** The private key as PKCS #8 PEM. A secret: for a file that only its owner may read. */
export function exportSigningKey(key: SigningKey): string {
  return key.privateKey.export({ format: "pem", type: "pkcs8" }).toString();
}

/** Reads {@link exportSigningKey}'s text. Throws `input/invalid` for anything but an Ed25519 private key. */
export function importSigningKey(pem: string): SigningKey {
  const privateKey = readPrivateKey(pem);
  if (privateKey?.asymmetricKeyType !== "ed25519") {
    throw invalid("signingKey", "is not an Ed25519 private key in PEM");
  }
  return fromPrivateKey(privateKey);
}

function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined; // the cause could quote the key, so it is dropped
  }
}

function fromPrivateKey(privateKey: KeyObject): SigningKey {
  const publicKey = createPublicKey(privateKey);
  return { kid: keyId(publicKey), privateKey, publicKey };
}

/** The 32 raw bytes of an Ed25519 public key (or of the public half of a private one), base64url. */
export function publicKeyText(key: KeyObject): string {
  const { x } = key.export({ format: "jwk" });
  if (key.asymmetricKeyType !== "ed25519" || x === undefined) throw new TypeError("not an Ed25519 key");
  return x;
}

/** The RFC 7638 thumbprint of an Ed25519 public key: what tokens signed with it carry as `kid`. */
export function keyId(key: KeyObject): string {
  return keyIdOfText(publicKeyText(key));
}

/** As {@link keyId}, of {@link publicKeyText}'s text. */
export function keyIdOfText(text: string): string {
  return hash("sha256", `{"crv":"Ed25519","kty":"OKP","x":"${text}"}`, "base64url");
}

/**
 * Checks {@link publicKeyText}'s text: the canonical encoding of 32 bytes that are a canonical point encoding and no
 * point of small order (under such a key signatures exist that fit many messages). Throws `input/invalid`.
 */
export function parsePublicKey(value: unknown): string {
  const text = parse32Bytes(value, "publicKey");
  if (isRefusedPoint(Buffer.from(text, "base64url"))) throw invalid("publicKey", "is not a safe point");
  return text;
}

/** The key object of {@link publicKeyText}'s text. Throws `input/invalid` as {@link parsePublicKey} does. */
export function importPublicKey(text: string): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: parsePublicKey(text) }, format: "jwk" });
}

/** The canonical y coordinates of the points of order 1, 2, 4 and 8, little-endian, sign bit clear. */
const smallOrder: ReadonlySet<string> = new Set([
  "0100000000000000000000000000000000000000000000000000000000000000",
  "0000000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** Of 32 bytes, of which it clears the sign bit. */
function isRefusedPoint(y: Buffer): boolean {
  y.writeUInt8(y.readUInt8(31) & 0x7f, 31);
  return smallOrder.has(y.toString("hex")) || !isBelowPrime(y);
}

/** RFC 8032 section 5.1.3: y is below p = 2^255 - 19, little-endian `ed ff … ff 7f`, or the encoding is not canonical. */
function isBelowPrime(y: Buffer): boolean {
  return y.readUInt8(0) < 0xed || y.readUInt8(31) < 0x7f || y.subarray(1, 31).some((byte) => byte < 0xff);
}
