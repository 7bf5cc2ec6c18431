// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  compareIdentity,
  type Digest,
  type ExecutionCertificate,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { type ChainLink, chainLinksLimit } from "./chain-links.ts";
import { manifestDigest } from "./digest.ts";
import type { KeyRing } from "./key-ring.ts";
import { importPublicKey, keyIdOfText } from "./keys.ts";
import { openManifest, verifyCountersigned } from "./manifest.ts";

/** Where the manifests of a chain break. */
export type ManifestBreak =
  | "too many manifests"
  | "repeated manifest"
  | "certificate is not in the chain"
  | "other execution"
  | "previous is missing"
  | "previous is newer"
  | "restored from none of these"
  | "restored from a newer one";

type Manifests = ReadonlyMap<Digest, SnapshotManifest>;

/**
 * the manifests by their digest: each countersigned by the control plane, signed by an execution of the chain, and
 * linked; and each certificate that was restored from one finds it here. Throws `snapshot/refused`.
 */
export function verifyManifests(
  countersigned: readonly string[],
  links: readonly ChainLink[],
  ring: KeyRing,
): Manifests {
  if (countersigned.length > chainLinksLimit) throw broken("too many manifests");
  const signers = new Map(links.map((link) => [link.digest, link.certificate]));
  const keys = executionKeys(links);
  const manifests = new Map<Digest, SnapshotManifest>();
  for (const token of countersigned) {
    const signed = verifyCountersigned(token, ring);
    const digest = manifestDigest(signed);
    if (manifests.has(digest)) throw broken("repeated manifest");
    manifests.set(digest, verifySigner(signed, signers, keys));
  }
  for (const manifest of manifests.values()) checkPrevious(manifest, manifests, links);
  for (const { certificate } of links) checkRestored(certificate, manifests);
  return manifests;
}

function executionKeys(links: readonly ChainLink[]): ReadonlyMap<string, KeyObject> {
  const keys = new Map<string, KeyObject>();
  for (const { publicKey } of links.map((link) => link.certificate)) {
    keys.set(keyIdOfText(publicKey), importPublicKey(publicKey));
  }
  return keys;
}

/** signed by the key of the very execution whose certificate it names. */
function verifySigner(
  signed: string,
  signers: ReadonlyMap<Digest, ExecutionCertificate>,
  keys: ReadonlyMap<string, KeyObject>,
): SnapshotManifest {
  const { manifest, kid } = openManifest(signed, (name) => keys.get(name));
  const signer = signers.get(manifest.certificate);
  if (signer === undefined) throw broken("certificate is not in the chain");
  const isSame = compareIdentity(manifest.identity, signer.identity) === "identical";
  if (!isSame || kid !== keyIdOfText(signer.publicKey)) throw broken("other execution");
  return manifest;
}

/** the previous manifest is here and not of a later generation; a fork's first may name its parent's. */
function checkPrevious(manifest: SnapshotManifest, manifests: Manifests, links: readonly ChainLink[]): void {
  const { previousManifest } = manifest;
  if (previousManifest === null) return;
  const previous = manifests.get(previousManifest);
  if (previous === undefined) {
    const isParents = links.some(({ certificate }) => namesAsParent(certificate, previousManifest));
    if (!isParents) throw broken("previous is missing");
  } else if (previous.identity.generation > manifest.identity.generation) throw broken("previous is newer");
}

/** what an execution was restored from is an older manifest of this sandbox, or the parent's that its origin names. */
function checkRestored(certificate: ExecutionCertificate, manifests: Manifests): void {
  const { restoredFrom } = certificate;
  if (restoredFrom === null || namesAsParent(certificate, restoredFrom)) return;
  const manifest = manifests.get(restoredFrom);
  if (manifest === undefined) throw broken("restored from none of these");
  const isOlder = manifest.identity.generation < certificate.identity.generation;
  if (!isOlder) throw broken("restored from a newer one");
}

function namesAsParent({ origin }: ExecutionCertificate, manifest: Digest): boolean {
  return origin.kind !== "self" && origin.parentManifest === manifest;
}

function broken(problem: ManifestBreak): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}
