// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { members, SpaceError } from "@space/model";
import { invalid, parseCount, parseList, parseSeconds } from "./fields.ts";
import { openToken, sealToken, type TokenKind } from "./jws.ts";
import { importPublicKey, keyId, keyIdOfText, parsePublicKey, type SigningKey } from "./keys.ts";

/** what the root signs: the public keys that count now. `version` only grows. */
export interface KeyBundle {
  readonly version: number;
  readonly keys: readonly BundledKey[];
  readonly issuedAtSeconds: number;
}

export interface BundledKey {
  readonly kid: string;
  /** 32 raw bytes, base64url. */
  readonly publicKey: string;
}

/** Rotation needs two or three. */
export const bundleKeysLimit = 16;

const bundleKind: TokenKind<KeyBundle> = {
  typ: "space-key-bundle+jwt",
  limitBytes: 8192,
  read: readBundle,
};

/** Signs a verification bundle with the root key. Throws `input/invalid`. */
export function signKeyBundle(root: SigningKey, bundle: KeyBundle): string {
  const { version, issuedAtSeconds } = bundle;
  const keys = bundle.keys.map(({ kid, publicKey }) => ({ kid, publicKey }));
  return sealToken(bundleKind, root, { version, iat: issuedAtSeconds, keys }).token;
}

function readBundle(payload: unknown): KeyBundle {
  const { version, iat, keys } = members(payload, "bundle", ["version", "iat", "keys"]);
  return {
    version: parseCount(version, "version", 1),
    issuedAtSeconds: parseSeconds(iat, "iat"),
    keys: parseList(keys, "keys", bundleKeysLimit).map(readKey),
  };
}

function readKey(value: unknown): BundledKey {
  const key = members(value, "key", ["kid", "publicKey"]);
  const publicKey = parsePublicKey(key["publicKey"]);
  const kid = keyIdOfText(publicKey);
  if (key["kid"] !== kid) throw invalid("kid", "is not the key's thumbprint");
  return { kid, publicKey };
}

/** The public keys of one verified bundle. Immutable; holds key objects, so that no request imports one. */
export class KeyRing {
  readonly version: number;
  readonly #keys: ReadonlyMap<string, KeyObject>;

  private constructor(version: number, keys: ReadonlyMap<string, KeyObject>) {
    this.version = version;
    this.#keys = keys;
  }

  /**
   * the ring of a bundle signed by the pinned root. Throws `bundle/refused` for anything else and for a key that
   * is held twice, `bundle/rollback` for a version below `minVersion`.
   */
  static fromBundle(token: string, root: KeyObject, minVersion = 1): KeyRing {
    const rootId = keyId(root);
    const opened = openToken(bundleKind, token, (kid) => (kid === rootId ? root : undefined));
    if (opened.kind === "refused") throw refused(opened.reason);
    const { version, keys } = opened.value;
    if (version < minVersion) throw new SpaceError("bundle/rollback", { held: minVersion, offered: version });
    const ring = new Map(keys.map(({ kid, publicKey }) => [kid, importPublicKey(publicKey)]));
    if (ring.size !== keys.length) throw refused("repeated key");
    return new KeyRing(version, ring);
  }

  /** Trusts nobody. */
  static readonly none: KeyRing = new KeyRing(0, new Map());

  /** The key object of a key id. Bound, so that it can be passed on as a function. */
  readonly find = (kid: string): KeyObject | undefined => this.#keys.get(kid);

  entries(): Iterable<readonly [string, KeyObject]> {
    return this.#keys.entries();
  }
}

function refused(problem: string): SpaceError {
  return new SpaceError("bundle/refused", { problem });
}
