// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac } from "node:crypto";
import { publicKeyText, type SigningKey } from "@space/capability";
import { signParts } from "../fixed-keys.ts";
import type { FuzzRandom } from "./fuzz-random.ts";

/** Longest input that is tried: above every limit. */
export const longestInput: number = 1024 * 1024;

type Mutation = (input: Buffer, random: FuzzRandom, others: readonly Buffer[]) => Buffer;

const at = (input: Buffer, random: FuzzRandom): number => random.below(input.length + 1);
const put = (input: Buffer, from: number, removed: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, from), bytes, input.subarray(from + removed)]);

/** Changes that know nothing of what they change. */
const blind: readonly Mutation[] = [
  (input, random) => put(input, at(input, random), 1, Buffer.from([random.below(256)])),
  (input, random) =>
    put(input, at(input, random), 1, Buffer.from(random.one(Array.from('AZaz09-_.={}"\\\u0000\n:,[')))),
  (input, random) => put(input, at(input, random), 0, Buffer.from([random.below(256)])),
  (input, random) => put(input, at(input, random), random.below(16), Buffer.alloc(0)),
  (input, random) => input.subarray(0, at(input, random)),
  (input, random) => {
    const from = at(input, random);
    return put(input, from, 0, input.subarray(from, from + random.below(64)));
  },
  (input, random, others) => {
    const other = random.one(others);
    return Buffer.concat([input.subarray(0, at(input, random)), other.subarray(at(other, random))]);
  },
  (input, random) =>
    put(input, at(input, random), 0, Buffer.alloc(random.below(random.one([16, 5_000, 100_000])), 65)),
];

/** Between one and four blind changes, one after the other. */
export function mutateBytes(input: Buffer, random: FuzzRandom, others: readonly Buffer[]): Buffer {
  let changed = input;
  for (let left = 1 + random.below(4); left > 0; left -= 1)
    changed = random.one(blind)(changed, random, others);
  return changed.subarray(0, longestInput);
}

const values: readonly string[] = [
  "null",
  "true",
  "0",
  "-0",
  "1e3",
  "1.0",
  "9007199254740993",
  "1e999",
  '""',
  '"x"',
  '"\\u0041"',
  '"\ud800"',
  "[]",
  "{}",
  "[[[[[[[[[[]]]]]]]]]]",
  '{"__proto__":1}',
  '"control"',
  '["pty","pty"]',
  "1800000000",
  "1799999999.5",
];

/** Changes to the text of JSON at the places where its members and values are. */
export function mutateJson(text: string, random: FuzzRandom): string {
  const places = [...text.matchAll(/"[^"]*":|[{}[\],]/g)].map(({ index }) => index);
  const from = places.length === 0 ? 0 : random.one(places);
  const end = Math.min(text.length, from + 1 + random.below(40));
  switch (random.below(7)) {
    case 0:
      return text.slice(0, from) + text.slice(end);
    case 1:
      return `${text.slice(0, end)}${text.slice(from, end)}${text.slice(end)}`;
    case 2:
      return text.replace(/:("[^"]*"|[0-9.]+)/g, (old) =>
        random.below(6) === 0 ? `:${random.one(values)}` : old,
      );
    case 3:
      return text.replace(
        "{",
        `{"${random.one(["iss", "exp", "nbf", "__proto__", "\\u0069ss"])}":${random.one(values)},`,
      );
    case 4:
      return `${text.slice(0, from)}${random.one([" ", "\n", "\ufeff", "/**/"])}${text.slice(from)}`;
    case 5:
      return "[".repeat(random.below(3_000)) + text;
    default:
      return text.replace(/"([a-z])/g, (old, letter: string) =>
        random.below(8) === 0 ? `"\\u00${letter.charCodeAt(0).toString(16)}` : old,
      );
  }
}

/** Takes a token apart, changes what it says, and signs it well again, or nearly. */
export function mutateToken(input: Buffer, random: FuzzRandom, keys: readonly SigningKey[]): Buffer {
  const [header = "", payload = "", signature = ""] = input.toString("latin1").split(".");
  const decoded = (part: string): string => Buffer.from(part, "base64url").toString();
  const key = random.one(keys);
  switch (random.below(5)) {
    case 0:
      return Buffer.from(signParts(key, decoded(header), decoded(payload)));
    case 1:
      return Buffer.from(signParts(key, mutateJson(decoded(header), random), decoded(payload)));
    case 2: {
      const alg = random.one(["none", "HS256", "Ed25519", "EdDSA", "eddsa", "RS256"]);
      const forged = Buffer.from(decoded(header).replace("EdDSA", alg)).toString("base64url");
      const hmac = createHmac("sha256", Buffer.from(publicKeyText(key.publicKey), "base64url"));
      const mac = hmac.update(`${forged}.${payload}`).digest("base64url");
      return Buffer.from(`${forged}.${payload}.${random.one([mac, "", signature])}`);
    }
    default:
      return Buffer.from(signParts(key, decoded(header), mutateJson(decoded(payload), random)));
  }
}
