// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type KeyObject, sign, verify } from "node:crypto";
import { isSpaceError, SpaceError } from "@space/model";
import { decodeBase64url } from "./base64url.ts";
import type { SigningKey } from "./keys.ts";
import { readStrictJson } from "./strict-json.ts";

/** One kind of signed statement. `typ` is inside the signature, so that no kind can be taken for another. */
export interface TokenKind<T> {
  readonly typ: string;
  /** Longest token. Checked before anything else. */
  readonly limitBytes: number;
  /** Takes the payload apart; throws `input/invalid`. */
  readonly read: (payload: unknown) => T;
}

/** The public key that may have signed under a key id, or undefined. */
export type KeyFinder = (kid: string) => KeyObject | undefined;

/** A set of public keys: a `KeyRing`, or an archive of all that there were. */
export interface KeyHolder {
  readonly find: KeyFinder;
}

/** Why a token was refused; later checks did not run. */
export type TokenRefusal = "form" | "key" | "signature";

export type OpenedToken<T> =
  | { readonly kind: "opened"; readonly value: T; readonly kid: string }
  | { readonly kind: "refused"; readonly reason: TokenRefusal };

const formRefused = { kind: "refused", reason: "form" } as const;
const keyRefused = { kind: "refused", reason: "key" } as const;
const signatureRefused = { kind: "refused", reason: "signature" } as const;

/**
 * judges a compact JWS: size, shape, header, key, signature, then the payload of the very bytes that were signed.
 * Hostile text never makes it throw.
 */
export function openToken<T>(kind: TokenKind<T>, token: string, find: KeyFinder): OpenedToken<T> {
  if (token.length > kind.limitBytes) return formRefused;
  const parts = split(token);
  const kid = parts && readHeader(parts.header, kind.typ);
  if (parts === undefined || kid === undefined) return formRefused;
  const key = find(kid);
  if (key === undefined) return keyRefused;
  if (!verify(null, Buffer.from(parts.signed, "latin1"), key, parts.signature)) return signatureRefused;
  return readPayload(kind, parts.payload, kid);
}

interface TokenParts {
  readonly header: Buffer;
  readonly payload: Buffer;
  readonly signature: Buffer;
  readonly signed: string;
}

/** three parts of canonical base64url, so also ASCII; the third is an Ed25519 signature by its length. */
function split(token: string): TokenParts | undefined {
  const first = token.indexOf(".");
  const second = token.indexOf(".", first + 1);
  if (second < 0) return undefined; // so also when there is no first
  const header = decodeBase64url(token.slice(0, first));
  const payload = decodeBase64url(token.slice(first + 1, second));
  const signature = decodeBase64url(token.slice(second + 1)); // a third dot would be refused here
  if (header === undefined || payload === undefined || signature?.length !== 64) return undefined;
  return { header, payload, signature, signed: token.slice(0, second) };
}

function readPayload<T>(kind: TokenKind<T>, payload: Buffer, kid: string): OpenedToken<T> {
  try {
    return { kind: "opened", value: readStrictJson(payload, kind.read), kid };
  } catch (error) {
    if (isSpaceError(error, "input/invalid")) return formRefused;
    throw error;
  }
}

/** Signs a payload, and returns it as its reader sees it: nothing is signed that a verifier would refuse by its form. */
export function sealToken<T>(
  kind: TokenKind<T>,
  key: SigningKey,
  payload: object,
): { readonly token: string; readonly value: T } {
  const value = kind.read(payload); // its text will be the one text of its value: JSON.stringify writes it
  const text = JSON.stringify(payload);
  const signed = `${headerPart(kind.typ, key)}.${base64url(text)}`;
  const token = `${signed}.${sign(null, Buffer.from(signed, "latin1"), key.privateKey).toString("base64url")}`;
  if (token.length > kind.limitBytes) {
    throw new SpaceError("input/too-large", { what: kind.typ, limitBytes: kind.limitBytes });
  }
  return { token, value };
}

/** The encoded headers that a key has signed, by their type: as many as there are kinds. */
const headerParts = new WeakMap<SigningKey, Map<string, string>>();

function headerPart(typ: string, key: SigningKey): string {
  const parts = headerParts.get(key) ?? new Map<string, string>();
  const known = parts.get(typ);
  if (known !== undefined) return known;
  const part = base64url(writeHeader(typ, key.kid));
  headerParts.set(key, parts.set(typ, part));
  return part;
}

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** A header has one text per type and key id: this, without white space, in this order. */
function writeHeader(typ: string, kid: string): string {
  return `{"alg":"EdDSA","typ":"${typ}","kid":"${kid}"}`;
}

/**
 * the key id of a header that has exactly the one algorithm, the wanted type and a key id; otherwise undefined.
 * The text is compared as a whole: what nobody has signed for yet reaches no JSON parser.
 */
function readHeader(bytes: Buffer, typ: string): string | undefined {
  const text = bytes.toString("latin1");
  const kid = text.slice(-45, -2);
  return text === writeHeader(typ, kid) && /^[A-Za-z0-9_-]{43}$/.test(kid) ? kid : undefined;
}

/** The key id that a token of any kind claims, undefined where it has no such header. Nothing is verified. */
export function claimedKeyId(token: string): string | undefined {
  const header = Buffer.from(token.slice(0, Math.min(token.indexOf("."), 512)), "base64url").toString(
    "latin1",
  );
  const [, typ = "", kid = ""] = /"typ":"([^"]*)","kid":"([^"]*)"/.exec(header) ?? [];
  return readHeader(Buffer.from(header, "latin1"), typ) === kid ? kid : undefined;
}

/**
 * The payload of a token whose exact bytes are vouched for already (by their digest in a signed statement, or by the
 * reader's own durable record), so that no key is asked. undefined: not of this kind's form.
 */
export function openVouched<T>(kind: TokenKind<T>, token: string): T | undefined {
  if (token.length > kind.limitBytes) return undefined;
  const parts = split(token);
  const kid = parts && readHeader(parts.header, kind.typ);
  if (parts === undefined || kid === undefined) return undefined;
  const opened = readPayload(kind, parts.payload, kid);
  return opened.kind === "opened" ? opened.value : undefined;
}
