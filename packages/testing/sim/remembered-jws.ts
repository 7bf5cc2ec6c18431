// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the capability package's `jws.ts`, in front of the real one (see loader.ts). What a text says under a key
// is a pure function of both, and in one process many simulated components ask for it: what has been signed here (the same
// text that the real function makes, by a shorter way), or opened once, is not taken apart again under the very same key. Every other text, and every text under another key,
// is judged by the real functions, and so is everything in a world of real keys.

import { signatureText } from "./stand-in-crypto.ts";

/** As in the real module. */
interface TokenKind<T> {
  readonly typ: string;
  readonly limitBytes: number;
  readonly read: (payload: unknown) => T;
}
/** `point`: of a stand-in key alone. */
interface Key {
  readonly point?: string;
}
type KeyFinder = (kid: string) => Key | undefined;
type OpenedToken<T> =
  | { readonly kind: "opened"; readonly value: T; readonly kid: string }
  | { readonly kind: "refused"; readonly reason: string };
interface SigningKey {
  readonly kid: string;
  readonly privateKey: Key;
}
interface SealedToken<T> {
  readonly token: string;
  readonly value: T;
}

interface RealModule {
  readonly openToken: <T>(kind: TokenKind<T>, token: string, find: KeyFinder) => OpenedToken<T>;
  readonly openVouched: <T>(kind: TokenKind<T>, token: string) => T | undefined;
  readonly sealToken: <T>(kind: TokenKind<T>, key: SigningKey, payload: object) => SealedToken<T>;
  readonly claimedKeyId: (token: string) => string | undefined;
}

const real: RealModule = await import(new URL("../../capability/src/jws.ts", import.meta.url).href);

/** Good under the key of this point. `opened` is frozen as far as its kind's reader freezes it: nobody changes a value. */
interface Remembered {
  readonly token: string;
  readonly kind: unknown;
  readonly point: string;
  readonly opened: Extract<OpenedToken<unknown>, { kind: "opened" }>;
}

/** Texts of all kinds, by where their signatures begin: most are opened soon after they were sealed. Full, it begins anew. */
const memoryLimit = 1024;
const memory = new Map<string, Remembered>();
const [signatureLength, beginningLength] = [86, 12];

function beginningOf(token: string): string {
  const at = token.length - signatureLength;
  return token.slice(at, at + beginningLength);
}

function remember(remembered: Remembered): void {
  if (memory.size >= memoryLimit) memory.clear();
  memory.set(beginningOf(remembered.token), remembered);
}

function recall(token: string): Remembered | undefined {
  const known = memory.get(beginningOf(token));
  return known?.token === token ? known : undefined;
}

export function sealToken<T>(kind: TokenKind<T>, key: SigningKey, payload: object): SealedToken<T> {
  const { kid, privateKey } = key;
  const { point } = privateKey;
  if (point === undefined) return real.sealToken(kind, key, payload);
  const value = kind.read(payload);
  const signed = `${headerPart(kind.typ, key)}.${base64url(JSON.stringify(payload))}`;
  const token = `${signed}.${signatureText(privateKey, signed)}`;
  if (token.length > kind.limitBytes) return real.sealToken(kind, key, payload); // refuses it
  remember({ token, kind, point, opened: Object.freeze({ kind: "opened", value, kid }) });
  return { token, value };
}

/** As many as there are kinds, of each key. */
const headerParts = new WeakMap<SigningKey, Map<string, string>>();

function headerPart(typ: string, key: SigningKey): string {
  const parts = headerParts.get(key) ?? new Map<string, string>();
  const known = parts.get(typ);
  if (known !== undefined) return known;
  const part = base64url(`{"alg":"EdDSA","typ":"${typ}","kid":"${key.kid}"}`);
  headerParts.set(key, parts.set(typ, part));
  return part;
}

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

export function openToken<T>(kind: TokenKind<T>, token: string, find: KeyFinder): OpenedToken<T> {
  const known = recall(token);
  if (known?.kind === kind && known.point === find(known.opened.kid)?.point) {
    return known.opened as OpenedToken<T>; // cast: of this kind
  }
  let point: string | undefined;
  const opened = real.openToken(kind, token, (kid) => {
    const key = find(kid);
    point = key?.point;
    return key;
  });
  if (opened.kind === "opened" && point !== undefined) {
    remember({ token, kind, point, opened: Object.freeze(opened) });
  }
  return opened;
}

export function openVouched<T>(kind: TokenKind<T>, token: string): T | undefined {
  const known = recall(token);
  if (known?.kind === kind) return known.opened.value as T; // cast: of this kind
  return real.openVouched(kind, token);
}

export function claimedKeyId(token: string): string | undefined {
  return recall(token)?.opened.kid ?? real.claimedKeyId(token);
}
