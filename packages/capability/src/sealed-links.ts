// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  compareIdentity,
  type Digest,
  firstGeneration,
  isSpaceError,
  type SandboxId,
  type SealedChainProblem,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { verifyCertificate } from "./certificate.ts";
import { breakOfSuccession, type ChainLink, chainLinksLimit } from "./chain-links.ts";
import { certificateDigest, manifestDigest } from "./digest.ts";
import type { KeyHolder } from "./jws.ts";
import { importPublicKey } from "./keys.ts";
import { verifyCountersigned, verifyManifest } from "./manifest.ts";
import type { SealedLink } from "./sealed-segment.ts";

/** where a chain ends of which every link from generation 1 on has been verified. */
export interface SealedEnd {
  readonly sandboxId: SandboxId;
  /** The newest certificate. */
  readonly certificate: ChainLink;
  /** The newest manifest before it. */
  readonly manifest: Digest | null;
  /** Certificates and manifests up to here. */
  readonly links: number;
}

/** verifies one link as the next one of its sandbox. `link` is how an error names it. Throws `snapshot/chain-refused`. */
export function followSealed(
  before: SealedEnd | undefined,
  next: SealedLink,
  {
    keys,
    sandboxId,
    link,
  }: { readonly keys: KeyHolder; readonly sandboxId: SandboxId; readonly link: string },
): SealedEnd {
  if ((before?.links ?? 0) >= chainLinksLimit) throw chainRefused("too long", link);
  if (before !== undefined && before.sandboxId !== sandboxId) throw chainRefused("other sandbox", link);
  const refuse = (problem: SealedChainProblem): never => {
    throw chainRefused(problem, link);
  };
  return "certificate" in next
    ? followCertificate(before, next.certificate, { keys, sandboxId, refuse, link })
    : followManifest(before, next.manifest, { keys, refuse, link });
}

interface Following {
  readonly keys: KeyHolder;
  readonly link: string;
  readonly refuse: (problem: SealedChainProblem) => never;
}

function followCertificate(
  before: SealedEnd | undefined,
  token: string,
  { keys, sandboxId, refuse, link }: Following & { readonly sandboxId: SandboxId },
): SealedEnd {
  const certificate = translated(link, () => verifyCertificate(token, keys));
  const { identity, previous, restoredFrom, origin } = certificate;
  if (identity.sandboxId !== sandboxId) return refuse("other sandbox");
  if (previous !== (before?.certificate.digest ?? null)) return refuse("broken link");
  if (before === undefined && identity.generation !== firstGeneration) return refuse("broken link");
  if (before !== undefined && breakOfSuccession(certificate, before.certificate.certificate) !== undefined)
    return refuse("broken link");
  // Statement 5: from the newest snapshot that there was; the first of a fork or template from its parent's, as its form says.
  const manifest = before?.manifest ?? null;
  if (origin.kind === "self" && restoredFrom !== manifest) return refuse("broken link");
  return {
    sandboxId,
    certificate: { digest: certificateDigest(token), certificate },
    manifest,
    links: (before?.links ?? 0) + 1,
  };
}

function followManifest(
  before: SealedEnd | undefined,
  countersigned: string,
  { keys, refuse, link }: Following,
): SealedEnd {
  if (before === undefined) return refuse("broken link");
  const signed = translated(link, () => verifyCountersigned(countersigned, keys));
  const manifest = translated(link, () => verifySignedBy(before, signed), "broken link");
  const problem = problemOfManifest(manifest, before);
  if (problem !== undefined) return refuse(problem);
  return { ...before, manifest: manifestDigest(signed), links: before.links + 1 };
}

/** with the key of the execution that the chain ends with, and no other. Throws `snapshot/refused`. */
function verifySignedBy({ certificate }: SealedEnd, signed: string): SnapshotManifest {
  return verifyManifest(signed, importPublicKey(certificate.certificate.publicKey));
}

/** a manifest is of the newest execution before it, and follows the newest manifest before it. */
function problemOfManifest(
  manifest: SnapshotManifest,
  { certificate, manifest: newest, sandboxId }: SealedEnd,
): SealedChainProblem | undefined {
  if (manifest.identity.sandboxId !== sandboxId) return "other sandbox";
  const isSame = compareIdentity(manifest.identity, certificate.certificate.identity) === "identical";
  if (!isSame || manifest.certificate !== certificate.digest) return "broken link";
  return manifest.previousManifest === newest ? undefined : "broken link";
}

/**
 * verifies a snapshot's manifest as what comes next after the chain that is sealed in it. Whether the control plane has committed it, the head
 * says. Throws `snapshot/chain-refused`, or `snapshot/refused` for a manifest that the chain's newest execution has not signed.
 */
export function verifySealedManifest(signed: string, end: SealedEnd): SnapshotManifest {
  const manifest = verifySignedBy(end, signed);
  const problem = problemOfManifest(manifest, end);
  if (problem !== undefined) throw chainRefused(problem, "manifest");
  return manifest;
}

/** `otherKey`: what it means that another key has signed. */
function translated<T>(link: string, check: () => T, otherKey: SealedChainProblem = "unknown key"): T {
  try {
    return check();
  } catch (cause) {
    const isRefused = isSpaceError(cause, "certificate/refused") || isSpaceError(cause, "snapshot/refused");
    if (!isRefused) throw cause;
    throw new SpaceError(
      "snapshot/chain-refused",
      { problem: problemOf(cause.details.problem, otherKey), link },
      { cause },
    );
  }
}

function problemOf(reason: string, otherKey: SealedChainProblem): SealedChainProblem {
  if (reason === "key") return otherKey;
  return reason === "signature" ? "signature" : "damaged";
}

export function chainRefused(problem: SealedChainProblem, link: string, cause?: unknown): SpaceError {
  return new SpaceError("snapshot/chain-refused", { problem, link }, { cause });
}
