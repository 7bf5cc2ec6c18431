// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type LeaseGrant,
  longestLeaseSeconds,
  members,
  parseWorkerId,
  SpaceError,
  shortestLeaseSeconds,
} from "@space/model";
import { invalid, parseCount, parseSeconds } from "./fields.ts";
import { openToken, sealToken, type TokenKind } from "./jws.ts";
import type { KeyRing } from "./key-ring.ts";
import type { SigningKey } from "./keys.ts";

const leaseKind: TokenKind<LeaseGrant> = { typ: "space-lease+jwt", limitBytes: 1024, read: readLease };

/** signs a grant. The control plane's alone, and only once it is durable there. Throws `input/invalid`. */
export function signLease(key: SigningKey, grant: LeaseGrant): string {
  const { workerId, nonce, termSeconds, position, issuedAtSeconds } = grant;
  const payload = { worker: workerId, nonce, term: termSeconds, position, iat: issuedAtSeconds };
  return sealToken(leaseKind, key, payload).token;
}

/** checks form, key and signature. Whose it is, and of which request, is the worker's to compare. Throws `lease/refused`. */
export function verifyLease(token: string, ring: KeyRing): LeaseGrant {
  const opened = openToken(leaseKind, token, ring.find);
  if (opened.kind === "opened") return opened.value;
  throw new SpaceError("lease/refused", { problem: opened.reason });
}

function readLease(payload: unknown): LeaseGrant {
  const lease = members(payload, "lease", ["worker", "nonce", "term", "position", "iat"]);
  return Object.freeze({
    workerId: parseWorkerId(lease["worker"]),
    nonce: parseNonce(lease["nonce"]),
    termSeconds: parseTerm(lease["term"]),
    position: parseCount(lease["position"], "position", 0),
    issuedAtSeconds: parseSeconds(lease["iat"], "iat"),
  });
}

/** 16 bytes, canonical base64url. */
function parseNonce(value: unknown): string {
  if (typeof value === "string" && /^[A-Za-z0-9_-]{21}[AQgw]$/.test(value)) return value;
  throw invalid("nonce", "must be 16 bytes in base64url");
}

function parseTerm(value: unknown): number {
  const term = parseCount(value, "term", shortestLeaseSeconds);
  if (term <= longestLeaseSeconds) return term;
  throw invalid("term", `must be at most ${longestLeaseSeconds}`);
}
