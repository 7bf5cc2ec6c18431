// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type HandOverGrant,
  identityToJson,
  longestHandOverSeconds,
  members,
  parseDigest,
  parseIdentity,
  parseWorkerId,
  SpaceError,
} from "@space/model";
import { invalid, parseSeconds } from "./fields.ts";
import { type KeyHolder, openToken, sealToken, type TokenKind } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

const grantKind: TokenKind<HandOverGrant> = { typ: "space-hand-over+jwt", limitBytes: 2048, read: readGrant };

/** Of a move whose manifest is committed. The control plane's alone. Throws `input/invalid`. */
export function signHandOverGrant(key: SigningKey, grant: HandOverGrant): string {
  const { identity, manifest, target, issuedAtSeconds: iat, expiresAtSeconds: exp } = grant;
  return sealToken(grantKind, key, { sbx: identityToJson(identity), manifest, target, iat, exp }).token;
}

/**
 * Checks form, key and signature. Whether its time has come, who asks, and what it is compared with, is the giving
 * worker's to check. Throws `hand-over/refused`.
 */
export function verifyHandOverGrant(token: string, keys: KeyHolder): HandOverGrant {
  const opened = openToken(grantKind, token, keys.find);
  if (opened.kind === "opened") return opened.value;
  throw new SpaceError("hand-over/refused", { problem: opened.reason });
}

function readGrant(payload: unknown): HandOverGrant {
  const grant = members(payload, "hand-over", ["sbx", "manifest", "target", "iat", "exp"]);
  const issuedAtSeconds = parseSeconds(grant["iat"], "iat");
  const expiresAtSeconds = parseSeconds(grant["exp"], "exp");
  const lifeSeconds = expiresAtSeconds - issuedAtSeconds;
  if (lifeSeconds < 1 || lifeSeconds > longestHandOverSeconds)
    throw invalid("exp", "is not within its bounds");
  const identity = parseIdentity(grant["sbx"]);
  const target = parseWorkerId(grant["target"]);
  if (target === identity.placement.workerId) throw invalid("target", "is the giver itself");
  const manifest = parseDigest(grant["manifest"]);
  return Object.freeze({ identity, manifest, target, issuedAtSeconds, expiresAtSeconds });
}
