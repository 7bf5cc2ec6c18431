// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type KeyObject, sign, verify } from "node:crypto";
import { isSpaceError, members, SpaceError } from "@space/model";
import { decodeBase64url } from "./base64url.ts";
import { invalid } from "./fields.ts";
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

/** Why a token was refused; later checks did not run. */
export type TokenRefusal = "form" | "key" | "signature";

export type OpenedToken<T> =
  | { readonly kind: "opened"; readonly value: T }
  | { readonly kind: "refused"; readonly reason: TokenRefusal };

const formRefused = { kind: "refused", reason: "form" } as const;
const keyRefused = { kind: "refused", reason: "key" } as const;
const signatureRefused = { kind: "refused", reason: "signature" } as const;

/** ASCII, exactly three parts, none of them empty, the last of the length of 64 bytes. */
const compact = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/;

/**
 * judges a compact JWS: size, shape, header, key, signature, then the payload of the very bytes that were signed.
 * Hostile text never makes it throw.
 */
export function openToken<T>(kind: TokenKind<T>, token: string, find: KeyFinder): OpenedToken<T> {
  if (token.length > kind.limitBytes) return formRefused;
  const [, header = "", payload = "", signature = ""] = compact.exec(token) ?? [];
  const signatureBytes = decodeBase64url(signature);
  const payloadBytes = decodeBase64url(payload);
  const kid = readHeader(header, kind.typ);
  if (signatureBytes === undefined || payloadBytes === undefined || kid === undefined) return formRefused;
  const key = find(kid);
  if (key === undefined) return keyRefused;
  const signed = Buffer.from(token.slice(0, -87), "latin1");
  if (!verify(null, signed, key, signatureBytes)) return signatureRefused;
  const value = refusedIsUndefined(() => ({ read: readStrictJson(payloadBytes, kind.read) }));
  return value === undefined ? formRefused : { kind: "opened", value: value.read };
}

/** Signs a payload, and returns it as its reader sees it: nothing is signed that a verifier would refuse by its form. */
export function sealToken<T>(
  kind: TokenKind<T>,
  key: SigningKey,
  payload: object,
): { readonly token: string; readonly value: T } {
  const bytes = Buffer.from(JSON.stringify(payload));
  const value = readStrictJson(bytes, kind.read);
  const header = Buffer.from(JSON.stringify({ alg: "EdDSA", typ: kind.typ, kid: key.kid }));
  const signed = `${header.toString("base64url")}.${bytes.toString("base64url")}`;
  const token = `${signed}.${sign(null, Buffer.from(signed, "latin1"), key.privateKey).toString("base64url")}`;
  if (token.length > kind.limitBytes) {
    throw new SpaceError("input/too-large", { what: kind.typ, limitBytes: kind.limitBytes });
  }
  return { token, value };
}

/** the key id of a header that has exactly the one algorithm, the wanted type and a key id; otherwise undefined. */
function readHeader(text: string, typ: string): string | undefined {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) return undefined;
  return refusedIsUndefined(() =>
    readStrictJson(bytes, (value) => {
      const { alg, typ: found, kid } = members(value, "header", ["alg", "typ", "kid"]);
      if (alg !== "EdDSA" || found !== typ || typeof kid !== "string") throw invalid("header", "is another");
      return kid;
    }),
  );
}

function refusedIsUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isSpaceError(error, "input/invalid")) return undefined;
    throw error;
  }
}
