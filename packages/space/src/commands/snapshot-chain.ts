// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  claimedKeyId,
  readVouchedManifest,
  SealedChains,
  type SealedEnd,
  type SealedLink,
  verifySealedManifest,
} from "@space/capability";
import { type Digest, identityToJson, parseDigest, type SnapshotManifest } from "@space/model";
import { DirectoryObjectStore } from "@space/object-store";
import { UsageError } from "../failure.ts";

/** Fewer characters of a digest could be those of several objects by chance. */
const leastPrefix = 12;

/** One statement of the history, as it was verified. */
interface SealedStep {
  readonly kid: string;
  readonly end: SealedEnd;
  readonly isCertificate: boolean;
}

/** a snapshot with its whole history, oldest first: verified with nothing but its objects and the root's public key. */
export interface VerifiedSnapshot {
  readonly digest: Digest;
  readonly manifest: SnapshotManifest;
  readonly steps: readonly SealedStep[];
}

/**
 * Verifies the snapshot in this directory whose manifest's digest begins so. It shows that the history is whole and signed; that
 * the control plane has committed it, and that none is newer, only the control plane can show. Throws `snapshot/chain-refused`,
 * `snapshot/refused` or `store/failed`.
 */
export async function verifySnapshotIn(
  directory: string,
  beginning: string,
  root: KeyObject,
): Promise<VerifiedSnapshot> {
  const objects = await DirectoryObjectStore.existing(directory);
  const digest = await oneOf(objects, beginning);
  const signed = Buffer.from(await objects.get(digest)).toString("utf8");
  const { chain } = readVouchedManifest(signed, digest);
  const steps: SealedStep[] = [];
  const onLink = (link: SealedLink, end: SealedEnd): void => {
    const isCertificate = "certificate" in link;
    const kid = claimedKeyId(isCertificate ? link.certificate : link.manifest) ?? "";
    steps.push({ kid, end, isCertificate });
  };
  const end = await new SealedChains({ root, onLink }).open(chain, (name) => objects.get(name));
  return { digest, manifest: verifySealedManifest(signed, end), steps };
}

async function oneOf(objects: DirectoryObjectStore, beginning: string): Promise<Digest> {
  if (!/^[0-9a-f]{12,64}$/.test(beginning))
    throw new UsageError(
      `--snapshot takes the digest of a snapshot, or its first ${leastPrefix} characters or more`,
    );
  if (beginning.length === 64) return parseDigest(beginning);
  const [found, another] = await objects.namedLike(beginning);
  if (found === undefined) throw new UsageError(`no object begins with ${beginning}`);
  if (another !== undefined) throw new UsageError(`more than one object begins with ${beginning}`);
  return found;
}

export function snapshotJson({ digest, manifest, steps }: VerifiedSnapshot): unknown {
  const { identity, previousManifest, chain, memory, filesystem, createdAtSeconds } = manifest;
  return {
    verified: true,
    snapshot: digest,
    identity: identityToJson(identity),
    createdAt: new Date(createdAtSeconds * 1000).toISOString(),
    previousManifest,
    chain,
    memory,
    sizeBytes: filesystem.reduce((total, { sizeBytes }) => total + sizeBytes, 0),
    history: steps.map(({ kid, end, isCertificate }) =>
      isCertificate
        ? {
            certificate: end.certificate.digest,
            identity: identityToJson(end.certificate.certificate.identity),
            restoredFrom: end.certificate.certificate.restoredFrom,
            kid,
          }
        : { snapshot: end.manifest, kid },
    ),
  };
}

export function snapshotText({ digest, manifest, steps }: VerifiedSnapshot): string {
  const { sandboxId, generation } = manifest.identity;
  const certificates = steps.filter(({ isCertificate }) => isCertificate).length;
  return [
    `${sandboxId}: snapshot ${short(digest)} of generation ${generation}, made ${new Date(manifest.createdAtSeconds * 1000).toISOString()}`,
    `${certificates} certificates and ${steps.length - certificates} snapshots before it verify to the root, newest first`,
    ...steps.toReversed().map(stepText),
    "that it was committed, and that none is newer, only the control plane can say",
    "",
  ].join("\n");
}

function stepText({ kid, end, isCertificate }: SealedStep): string {
  const by = `signed by ${kid.slice(0, 12)}`;
  if (!isCertificate) return `  snapshot ${short(end.manifest)}  ${by}`;
  const { digest, certificate } = end.certificate;
  const { generation, placement } = certificate.identity;
  const from =
    certificate.restoredFrom === null ? "cold start" : `from snapshot ${short(certificate.restoredFrom)}`;
  return `  generation ${generation}  ${short(digest)}  ${placement.workerId}  ${from}  ${by}`;
}

function short(digest: Digest | null): string {
  return digest?.slice(0, 12) ?? "none";
}
