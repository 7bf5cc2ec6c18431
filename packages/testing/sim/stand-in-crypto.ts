// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for `node:crypto` in the capability package and the access tokens alone (see loader.ts). Keys that it makes are as good as Ed25519
// for everything but an attacker: the same bytes under the same key have one signature, and any other bytes do not fit it.
// A world may ask for real keys instead; then every call goes to the real functions.

import * as real from "node:crypto";

/** What precedes the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410). */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** How the next keys are made. */
export interface KeyMaking {
  readonly real: boolean;
  readonly seed: () => Uint8Array;
}

interface Shared {
  simulatedKeys?: KeyMaking;
}

const shared = globalThis as unknown as Shared; // cast: how a world reaches this module, which it cannot import twice

/** From now on keys are made like this. */
export function makeKeys(making: KeyMaking): void {
  shared.simulatedKeys = making;
}

class StandInKey {
  readonly asymmetricKeyType = "ed25519";
  readonly type: "public" | "private";
  readonly point: string;
  /** Where its signatures begin. */
  readonly seeds: readonly [number, number];

  constructor(type: "public" | "private", point: string) {
    this.type = type;
    this.point = point;
    const bytes = Buffer.from(point, "base64url");
    this.seeds = [bytes.readInt32LE(0), bytes.readInt32LE(4)];
  }

  export({ format }: { readonly format: string }): { readonly x: string } | string {
    return format === "jwk" ? { x: this.point } : `stand-in ${this.point}`;
  }
}

type AnyKey = real.KeyObject | StandInKey;

export const { hash, timingSafeEqual, createSecretKey } = real;

/** Of one text; what it makes depends on key and text as a keyed hash does. */
export function createHmac(algorithm: "sha256", key: real.KeyObject): Pick<real.Hmac, "update" | "digest"> {
  if (shared.simulatedKeys?.real !== false) return real.createHmac(algorithm, key);
  const secret = key.export().toString("latin1");
  let text = "";
  const hmac = {
    update: (data: string) => {
      text += data;
      return hmac;
    },
    digest: () => real.hash(algorithm, `${secret}${text}`, "hex"),
  };
  return hmac as unknown as real.Hmac; // cast: the part of it that access tokens use
}

export function generateKeyPairSync(type: "ed25519"): {
  readonly privateKey: AnyKey;
  readonly publicKey: AnyKey;
} {
  const making = shared.simulatedKeys;
  if (making === undefined) return real.generateKeyPairSync(type);
  const seed = Buffer.from(making.seed());
  if (making.real) {
    const privateKey = real.createPrivateKey({
      key: Buffer.concat([pkcs8Prefix, seed]),
      format: "der",
      type: "pkcs8",
    });
    return { privateKey, publicKey: real.createPublicKey(privateKey) };
  }
  const point = real.hash("sha256", seed, "buffer");
  point.writeUInt8((point.readUInt8(31) & 0x3f) | 0x20, 31); // canonical, and of no small order
  const text = point.toString("base64url");
  return { privateKey: new StandInKey("private", text), publicKey: new StandInKey("public", text) };
}

export function createPrivateKey(pem: string): AnyKey {
  if (!pem.startsWith("stand-in ")) return real.createPrivateKey(pem);
  return new StandInKey("private", pem.slice("stand-in ".length));
}

export function createPublicKey(
  from: AnyKey | { readonly key: real.JsonWebKey; readonly format: "jwk" },
): AnyKey {
  if (from instanceof StandInKey) return new StandInKey("public", from.point);
  const isReal =
    from instanceof real.KeyObject || shared.simulatedKeys === undefined || shared.simulatedKeys.real;
  if (isReal) return real.createPublicKey(from);
  return new StandInKey("public", String(from.key.x));
}

export function sign(_algorithm: null, bytes: Buffer, key: AnyKey): Buffer {
  return key instanceof StandInKey ? signatureOf(key, bytes) : real.sign(null, bytes, key);
}

export function verify(_algorithm: null, bytes: Buffer, key: AnyKey, signature: Buffer): boolean {
  return key instanceof StandInKey
    ? signatureOf(key, bytes).equals(signature)
    : real.verify(null, bytes, key, signature);
}

/** 64 bits that depend on key and bytes, spread over as many bytes as a signature has. */
function signatureOf({ seeds }: StandInKey, bytes: Buffer): Buffer {
  let [a, b] = seeds;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul((b << 5) ^ (b >>> 27) ^ byte, 0x9e3779b1);
  }
  const signature = Buffer.allocUnsafe(64);
  for (let at = 0; at < 64; at += 8) {
    a = mixed(a ^ b);
    b = mixed(b + a);
    signature.writeInt32LE(a, at);
    signature.writeInt32LE(b, at + 4);
  }
  return signature;
}

function mixed(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) | 0;
}
