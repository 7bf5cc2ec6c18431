// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash, sign } from "node:crypto";
import { importSigningKey, type SigningKey } from "@space/capability";

/** What precedes the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410). */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** The same key for the same name, for ever. Everybody can compute it: for tests and vectors only. */
export function fixedKey(name: string): SigningKey {
  const seed = createHash("sha256").update(`space test key ${name}`).digest();
  return keyOfSeed(seed);
}

/** The key pair of 32 secret bytes. */
export function keyOfSeed(seed: Buffer): SigningKey {
  const der = Buffer.concat([pkcs8Prefix, seed]).toString("base64");
  return importSigningKey(`-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`);
}

/** The header that SPACE writes. */
export function headerText(key: SigningKey, typ: string): string {
  return `{"alg":"EdDSA","typ":"${typ}","kid":"${key.kid}"}`;
}

/** A compact JWS of exactly these bytes, well signed, whatever they say. */
export function signParts(key: SigningKey, header: string | Buffer, payload: string | Buffer): string {
  const signed = `${Buffer.from(header).toString("base64url")}.${Buffer.from(payload).toString("base64url")}`;
  return `${signed}.${sign(null, Buffer.from(signed), key.privateKey).toString("base64url")}`;
}
