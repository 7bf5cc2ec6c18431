// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for `node:crypto` in the capability package and the access tokens alone (see loader.ts). Keys that it makes are as good as Ed25519
// for everything but an attacker: the same bytes under the same key have one signature, and any other bytes do not fit it.
// A world may ask for real keys instead; then every call goes to the real functions.

import * as real from "node:crypto";
import { withBytes, withText } from "./byte-mix.ts";

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

/** Whether this world's keys are real, and so everything else that may be. True where nobody has said. */
export function areKeysReal(): boolean {
  return shared.simulatedKeys?.real !== false;
}

class StandInKey {
  readonly asymmetricKeyType = "ed25519";
  readonly type: "public" | "private";
  readonly point: string;
  /** Where its signatures begin. */
  readonly seeds: readonly [number, number];
  readonly #jwk: { readonly x: string };

  constructor(type: "public" | "private", point: string, seeds = seedsOf(Buffer.from(point, "base64url"))) {
    this.type = type;
    this.point = point;
    this.seeds = seeds;
    this.#jwk = { x: point };
  }

  export({ format }: { readonly format: string }): { readonly x: string } | string {
    return format === "jwk" ? this.#jwk : `stand-in ${this.point}`;
  }
}

function seedsOf(point: Buffer): readonly [number, number] {
  return [point.readInt32LE(0), point.readInt32LE(4)];
}

type AnyKey = real.KeyObject | StandInKey;

export const { timingSafeEqual, createSecretKey } = real;

/** Digests of texts, by encoding; many components of one process ask for the same. */
const digestsLimit = 1024;
const digests = {
  hex: new Map<string, string>(),
  base64: new Map<string, string>(),
  base64url: new Map<string, string>(),
};

/** Digests, in hexadecimal, of bytes that nobody changes: of objects and chunks. */
const digestsOfBytes = new WeakMap<Uint8Array, string>();

/** The real digest, remembered. */
export function hash(algorithm: "sha256", text: string | Uint8Array, encoding: keyof typeof digests): string {
  if (typeof text !== "string") {
    const known = encoding === "hex" ? digestsOfBytes.get(text) : undefined;
    const digest = known ?? real.hash(algorithm, text, encoding);
    if (encoding === "hex") digestsOfBytes.set(text, digest);
    return digest;
  }
  const known = digests[encoding];
  const remembered = known.get(text);
  if (remembered !== undefined) return remembered;
  const digest = real.hash(algorithm, text, encoding);
  if (known.size >= digestsLimit) known.clear();
  known.set(text, digest);
  return digest;
}

const secrets = new WeakMap<real.KeyObject, string>();

function secretOf(key: real.KeyObject): string {
  const known = secrets.get(key) ?? key.export().toString("latin1");
  secrets.set(key, known);
  return known;
}

/** Of one text; what it makes depends on key and text as a keyed hash does. */
export function createHmac(algorithm: "sha256", key: real.KeyObject): Pick<real.Hmac, "update" | "digest"> {
  if (areKeysReal()) return real.createHmac(algorithm, key);
  let text = secretOf(key);
  const hmac = {
    update: (data: string) => {
      text += data;
      return hmac;
    },
    digest: () => hash(algorithm, text, "hex"),
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
  seed[31] = (seed.readUInt8(31) & 0x3f) | 0x20; // the point is the seed: canonical, and of no small order
  const text = seed.toString("base64url");
  const seeds = seedsOf(seed);
  return {
    privateKey: new StandInKey("private", text, seeds),
    publicKey: new StandInKey("public", text, seeds),
  };
}

export function createPrivateKey(pem: string): AnyKey {
  if (!pem.startsWith("stand-in ")) return real.createPrivateKey(pem);
  return new StandInKey("private", pem.slice("stand-in ".length));
}

export function createPublicKey(
  from: AnyKey | { readonly key: real.JsonWebKey; readonly format: "jwk" },
): AnyKey {
  if (from instanceof StandInKey) return new StandInKey("public", from.point, from.seeds);
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

/** 64 bits that depend on key and bytes, and zeros up to the length of a signature. */
function signatureOf({ seeds }: StandInKey, bytes: Buffer): Buffer {
  return written(withBytes(seeds, bytes), bytes.length, Buffer.alloc(64));
}

/** What `sign` makes of an ASCII text's bytes, as base64url: without the bytes. */
export function signatureText(key: unknown, text: string): string {
  if (!(key instanceof StandInKey)) throw new TypeError("not a stand-in key");
  written(withText(key.seeds, text), text.length, beginning);
  return beginning.toString("base64url") + zeros;
}

/** Of a signature: the eight bytes that are not zero, and one more, so that its text ends with a whole letter. */
const beginning = Buffer.alloc(9);
const zeros = Buffer.alloc(64 - beginning.length).toString("base64url");

function written([first, second]: readonly [number, number], length: number, into: Buffer): Buffer {
  const a = mixed(first ^ second ^ length);
  into.writeInt32LE(a, 0);
  into.writeInt32LE(mixed(second + a), 4);
  return into;
}

function mixed(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) | 0;
}
