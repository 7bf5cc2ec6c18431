// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  compareIdentity,
  type Digest,
  type ExecutionCertificate,
  isSpaceError,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { type ChainLink, chainLinksLimit, nameOf } from "./chain-links.ts";
import { manifestDigest } from "./digest.ts";
import type { KeyHolder } from "./jws.ts";
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
 * linked; and each certificate that was restored from one finds it here. Throws `chain/refused` naming the link.
 */
export function verifyManifests(
  countersigned: readonly string[],
  links: readonly ChainLink[],
  keys: KeyHolder,
): Manifests {
  const count = countersigned.length;
  if (count > chainLinksLimit) throw broken("manifests", "too many manifests");
  const signers = new Map(links.map((link) => [link.digest, link.certificate]));
  const executions = executionKeys(links);
  const manifests = new Map<Digest, SnapshotManifest>();
  countersigned.forEach((token, at) => {
    checked(nameOf("manifest", at, count), () => {
      const signed = verifyCountersigned(token, keys);
      const digest = manifestDigest(signed);
      if (manifests.has(digest)) throw problem("repeated manifest");
      manifests.set(digest, verifySigner(signed, signers, executions));
    });
  });
  [...manifests.values()].forEach((manifest, at) => {
    checked(nameOf("manifest", at, count), () => checkPrevious(manifest, manifests));
  });
  links.forEach(({ certificate }, at) => {
    checked(nameOf("certificate", at, links.length), () => checkRestored(certificate, manifests));
  });
  return manifests;
}

/** Says which link it was that was refused. */
function checked(link: string, check: () => void): void {
  try {
    check();
  } catch (cause) {
    if (!isSpaceError(cause, "snapshot/refused")) throw cause;
    throw new SpaceError("chain/refused", { link, problem: cause.details.problem }, { cause });
  }
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
  if (signer === undefined) throw problem("certificate is not in the chain");
  const isSame = compareIdentity(manifest.identity, signer.identity) === "identical";
  if (!isSame || kid !== keyIdOfText(signer.publicKey)) throw problem("other execution");
  return manifest;
}

/** the previous manifest is here and not of a later generation. A fork's first has none: its certificate names the parent's. */
function checkPrevious({ previousManifest, identity }: SnapshotManifest, manifests: Manifests): void {
  if (previousManifest === null) return;
  const previous = manifests.get(previousManifest);
  if (previous === undefined) throw problem("previous is missing");
  if (previous.identity.generation > identity.generation) throw problem("previous is newer");
}

/** what an execution was restored from is an older manifest of this sandbox, or the parent's that its origin names. */
function checkRestored(certificate: ExecutionCertificate, manifests: Manifests): void {
  const { restoredFrom, origin } = certificate;
  if (restoredFrom === null || origin.kind !== "self") return; // its form says that it is the one that the origin names
  const manifest = manifests.get(restoredFrom);
  if (manifest === undefined) throw problem("restored from none of these");
  const isOlder = manifest.identity.generation < certificate.identity.generation;
  if (!isOlder) throw problem("restored from a newer one");
}

function problem(text: ManifestBreak): SpaceError {
  return new SpaceError("snapshot/refused", { problem: text });
}

function broken(link: string, text: ManifestBreak): SpaceError {
  return new SpaceError("chain/refused", { link, problem: text });
}
