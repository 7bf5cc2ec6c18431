// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Digest,
  type ExecutionCertificate,
  type ExecutionOrigin,
  firstGeneration,
  identityToJson,
  members,
  parseDigest,
  parseIdentity,
  type Retirement,
  SpaceError,
} from "@space/model";
import { certificateDigest } from "./digest.ts";
import { invalid, parseSeconds } from "./fields.ts";
import { type KeyHolder, openToken, openVouched, sealToken, type TokenKind } from "./jws.ts";
import { parsePublicKey, type SigningKey } from "./keys.ts";
import { readParentOrigin } from "./origin-grant.ts";

const certificateKind: TokenKind<ExecutionCertificate> = {
  typ: "space-exec-cert+jwt",
  limitBytes: 4096,
  read: readCertificate,
};

const retirementKind: TokenKind<Retirement> = {
  typ: "space-retire+jwt",
  limitBytes: 4096,
  read: readRetirement,
};

/** signs one link of the identity chain. The control plane's alone. Throws `input/invalid`. */
export function signCertificate(key: SigningKey, certificate: ExecutionCertificate): string {
  const { identity, publicKey, previous, restoredFrom, origin, issuedAtSeconds } = certificate;
  const payload = {
    sbx: identityToJson(identity),
    publicKey,
    previous,
    restoredFrom,
    origin,
    iat: issuedAtSeconds,
  };
  return sealToken(certificateKind, key, payload).token;
}

/** checks form, key and signature. Throws `certificate/refused`. */
export function verifyCertificate(token: string, keys: KeyHolder): ExecutionCertificate {
  return openOrRefuse(certificateKind, token, keys);
}

/**
 * Reads a certificate whose exact bytes are vouched for: `digest` comes from a signed statement or from the reader's own
 * record of what it verified at install. So the key that signed it may be gone by now. Throws `certificate/refused`.
 */
export function readVouchedCertificate(token: string, digest: Digest): ExecutionCertificate {
  if (certificateDigest(token) !== digest) throw refused("digest");
  const certificate = openVouched(certificateKind, token);
  if (certificate === undefined) throw refused("form");
  return certificate;
}

/** signs the order to stop serving exactly this identity. The control plane's alone. Throws `input/invalid`. */
export function signRetirement(key: SigningKey, retirement: Retirement): string {
  const payload = { sbx: identityToJson(retirement.identity), iat: retirement.issuedAtSeconds };
  return sealToken(retirementKind, key, payload).token;
}

/** checks form, key and signature. Throws `certificate/refused`. */
export function verifyRetirement(token: string, keys: KeyHolder): Retirement {
  return openOrRefuse(retirementKind, token, keys);
}

function openOrRefuse<T>(kind: TokenKind<T>, token: string, keys: KeyHolder): T {
  const opened = openToken(kind, token, keys.find);
  if (opened.kind === "opened") return opened.value;
  throw refused(opened.reason);
}

function refused(problem: string): SpaceError {
  return new SpaceError("certificate/refused", { problem });
}

function readCertificate(payload: unknown): ExecutionCertificate {
  const names = ["sbx", "publicKey", "previous", "restoredFrom", "origin", "iat"];
  const certificate = members(payload, "certificate", names);
  const identity = parseIdentity(certificate["sbx"]);
  const previous = readLink(certificate["previous"]);
  const isFirst = identity.generation === firstGeneration && identity.activation.attempt === 1;
  if (isFirst && previous !== null) throw invalid("previous", "must be null at the beginning");
  const restoredFrom = readLink(certificate["restoredFrom"]);
  const origin = readOrigin(certificate["origin"]);
  checkOrigin({ identity, restoredFrom, origin });
  return Object.freeze({
    identity,
    publicKey: parsePublicKey(certificate["publicKey"]),
    previous,
    restoredFrom,
    origin,
    issuedAtSeconds: parseSeconds(certificate["iat"], "iat"),
  });
}

function readOrigin(value: unknown): ExecutionOrigin {
  const { kind, parentManifest } = members(value, "origin", ["kind"], ["parentManifest"]);
  if (kind === "self" && parentManifest === undefined) return Object.freeze({ kind });
  return readParentOrigin(value);
}

/**
 * what is restored in generation 1 is another sandbox's, and exactly what its origin names; what a later generation is
 * restored from is its own sandbox's. So no certificate claims a parent that it does not come from, nor hides the one that it does.
 */
function checkOrigin({
  identity: { generation },
  restoredFrom,
  origin,
}: Pick<ExecutionCertificate, "identity" | "restoredFrom" | "origin">): void {
  const isFirst = generation === firstGeneration;
  if (origin.kind !== "self" && !isFirst) throw invalid("origin", "must be self after generation 1");
  const parent = origin.kind === "self" ? null : origin.parentManifest;
  if (isFirst && restoredFrom !== parent)
    throw invalid("origin", "must name what generation 1 was restored from");
}

function readLink(value: unknown): Digest | null {
  return value === null ? null : parseDigest(value);
}

function readRetirement(payload: unknown): Retirement {
  const { sbx, iat } = members(payload, "retirement", ["sbx", "iat"]);
  return Object.freeze({ identity: parseIdentity(sbx), issuedAtSeconds: parseSeconds(iat, "iat") });
}
