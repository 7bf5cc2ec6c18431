// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  type Chunk,
  type Digest,
  identityToJson,
  manifestVersion,
  members,
  parseDigest,
  parseIdentity,
  parseTenantKeyId,
  type SnapshotManifest,
  SpaceError,
  snapshotChunkLimit,
} from "@space/model";
import { manifestDigest } from "./digest.ts";
import { invalid, parseCount, parseList, parseSeconds } from "./fields.ts";
import { type KeyFinder, type KeyHolder, openToken, openVouched, sealToken, type TokenKind } from "./jws.ts";
import { keyId, type SigningKey } from "./keys.ts";

/** Room for `snapshotChunkLimit` chunks, encoded. */
export const manifestLimitBytes: number = 512 * 1024;
const countersignedLimitBytes = 704 * 1024;

const manifestKind: TokenKind<SnapshotManifest> = {
  typ: "space-manifest+jws",
  limitBytes: manifestLimitBytes,
  read: readManifest,
};

/** A manifest of any other version, as far as it can be read: which one it is. */
const otherVersionKind: TokenKind<number> = {
  ...manifestKind,
  read: (payload) => {
    const version =
      typeof payload === "object" && payload !== null && "version" in payload && payload.version;
    const isOther =
      typeof version === "number" && Number.isSafeInteger(version) && version !== manifestVersion;
    if (!isOther || version < 1) throw invalid("version", "is none");
    return version;
  },
};

const countersignedKind: TokenKind<string> = {
  typ: "space-countersigned-manifest+jws",
  limitBytes: countersignedLimitBytes,
  read: readCountersigned,
};

/** signs a snapshot's manifest with the execution's own key. Throws `input/invalid` or `input/too-large`. */
export function signManifest(executionKey: SigningKey, manifest: SnapshotManifest): string {
  const { version, identity, certificate, previousManifest, chain, keyId, substrate, memory } = manifest;
  const payload = {
    version,
    sbx: identityToJson(identity),
    certificate,
    previousManifest,
    chain,
    keyId,
    substrate,
    memory,
    filesystem: manifest.filesystem.map(({ digest, sizeBytes }) => ({ digest, sizeBytes })),
    iat: manifest.createdAtSeconds,
  };
  return sealToken(manifestKind, executionKey, payload).token;
}

/** Checks form, key and signature against the key that the execution's certificate names. Throws `snapshot/refused` or `snapshot/version`. */
export function verifyManifest(signed: string, executionPublicKey: KeyObject): SnapshotManifest {
  const executionKid = keyId(executionPublicKey);
  const find: KeyFinder = (kid) => (kid === executionKid ? executionPublicKey : undefined);
  return openManifest(signed, find).manifest;
}

/** As {@link verifyManifest} with the keys of several executions; `kid` is the one that signed. Throws `snapshot/refused` or `snapshot/version`. */
export function openManifest(
  signed: string,
  find: KeyFinder,
): { readonly manifest: SnapshotManifest; readonly kid: string } {
  const opened = openToken(manifestKind, signed, find);
  if (opened.kind === "opened") return { manifest: opened.value, kid: opened.kid };
  const other = openToken(otherVersionKind, signed, find);
  if (other.kind === "opened") throw new SpaceError("snapshot/version", { version: other.value });
  throw new SpaceError("snapshot/refused", { problem: opened.reason });
}

/**
 * Reads a manifest whose exact bytes are vouched for by a signed statement that names `digest`; who signed it is not
 * asked. Throws `snapshot/refused`, and `snapshot/version` for one of another version.
 */
export function readVouchedManifest(signed: string, digest: Digest): SnapshotManifest {
  if (manifestDigest(signed) !== digest) throw new SpaceError("snapshot/refused", { problem: "digest" });
  const manifest = openVouched(manifestKind, signed);
  if (manifest !== undefined) return manifest;
  const version = openVouched(otherVersionKind, signed);
  if (version !== undefined) throw new SpaceError("snapshot/version", { version });
  throw new SpaceError("snapshot/refused", { problem: "form" });
}

/** Reads a manifest from the control plane's own store, which names its digest. Throws as {@link readVouchedManifest}. */
export function readStoredManifest(countersigned: string, digest: Digest): SnapshotManifest {
  const signed = openVouched(countersignedKind, countersigned);
  if (signed === undefined) throw new SpaceError("snapshot/refused", { problem: "form" });
  return readVouchedManifest(signed, digest);
}

/** The control plane's word that this manifest was committed. It has checked the inner signature before. */
export function countersignManifest(key: SigningKey, signed: string): string {
  return sealToken(countersignedKind, key, { manifest: signed }).token;
}

/** Checks the control plane's signature; the signed manifest inside is still to be verified. Throws `snapshot/refused`. */
export function verifyCountersigned(token: string, keys: KeyHolder): string {
  return openOrRefuse(countersignedKind, token, keys.find).value;
}

function openOrRefuse<T>(
  kind: TokenKind<T>,
  token: string,
  find: KeyFinder,
): { readonly value: T; readonly kid: string } {
  const opened = openToken(kind, token, find);
  if (opened.kind === "opened") return opened;
  throw new SpaceError("snapshot/refused", { problem: opened.reason });
}

const names = [
  "version",
  "sbx",
  "certificate",
  "previousManifest",
  "chain",
  "keyId",
  "substrate",
  "memory",
  "filesystem",
  "iat",
];

function readManifest(payload: unknown): SnapshotManifest {
  const manifest = members(payload, "manifest", names);
  const { version, substrate, memory, previousManifest } = manifest;
  const identity = parseIdentity(manifest["sbx"]);
  if (version !== manifestVersion) throw invalid("version", "is not known");
  if (substrate !== identity.placement.substrate) throw invalid("substrate", "is not the execution's");
  if (memory !== "none" && memory !== "frozen-on-worker" && memory !== "in-snapshot")
    throw invalid("memory", "is not known");
  return Object.freeze({
    version,
    identity,
    certificate: parseDigest(manifest["certificate"]),
    previousManifest: readLink(previousManifest),
    chain: parseDigest(manifest["chain"]),
    keyId: parseTenantKeyId(manifest["keyId"]),
    substrate: identity.placement.substrate,
    memory,
    filesystem: Object.freeze(
      parseList(manifest["filesystem"], "filesystem", snapshotChunkLimit).map(readChunk),
    ),
    createdAtSeconds: parseSeconds(manifest["iat"], "iat"),
  });
}

function readChunk(value: unknown): Chunk {
  const { digest, sizeBytes } = members(value, "chunk", ["digest", "sizeBytes"]);
  return Object.freeze({ digest: parseDigest(digest), sizeBytes: parseCount(sizeBytes, "sizeBytes", 1) });
}

function readLink(value: unknown): Digest | null {
  return value === null ? null : parseDigest(value);
}

function readCountersigned(payload: unknown): string {
  const { manifest } = members(payload, "countersigned", ["manifest"]);
  if (typeof manifest !== "string") throw invalid("manifest", "must be a text");
  return manifest;
}
