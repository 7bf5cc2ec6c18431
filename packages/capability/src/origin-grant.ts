// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  members,
  type OriginGrant,
  type ParentOrigin,
  parseDigest,
  parseSandboxId,
  parseTenantId,
  SpaceError,
} from "@space/model";
import { invalid, parseSeconds } from "./fields.ts";
import { type KeyHolder, openToken, sealToken, type TokenKind } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

const grantKind: TokenKind<OriginGrant> = { typ: "space-origin+jwt", limitBytes: 2048, read: readGrant };

/** of a sandbox that is being made from its own tenant's snapshot. The control plane's alone. Throws `input/invalid`. */
export function signOriginGrant(key: SigningKey, grant: OriginGrant): string {
  const { sandboxId, tenantId, origin, issuedAtSeconds } = grant;
  return sealToken(grantKind, key, { sandboxId, tenantId, origin, iat: issuedAtSeconds }).token;
}

/** Checks form, key and signature. Throws `chain/refused`. */
export function verifyOriginGrant(token: string, keys: KeyHolder): OriginGrant {
  const opened = openToken(grantKind, token, keys.find);
  if (opened.kind === "opened") return opened.value;
  throw new SpaceError("chain/refused", { link: "origin", problem: opened.reason });
}

/** An origin that names a parent. Throws `input/invalid`. */
export function readParentOrigin(value: unknown): ParentOrigin {
  const { kind, parentManifest } = members(value, "origin", ["kind", "parentManifest"]);
  if (kind !== "fork" && kind !== "template") throw invalid("origin", "is not of its form");
  return Object.freeze({ kind, parentManifest: parseDigest(parentManifest) });
}

function readGrant(payload: unknown): OriginGrant {
  const grant = members(payload, "origin", ["sandboxId", "tenantId", "origin", "iat"]);
  return Object.freeze({
    sandboxId: parseSandboxId(grant["sandboxId"]),
    tenantId: parseTenantId(grant["tenantId"]),
    origin: readParentOrigin(grant["origin"]),
    issuedAtSeconds: parseSeconds(grant["iat"], "iat"),
  });
}
