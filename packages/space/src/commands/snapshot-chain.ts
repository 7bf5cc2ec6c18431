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
import {
  type Digest,
  identityToJson,
  isSpaceError,
  type ObjectStore,
  parseDigest,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { snapshotStore } from "@space/snapshot";
import type { SnapshotStorage } from "../data/snapshot-storage.ts";
import { UsageError } from "../failure.ts";
import { systemRandom } from "../host/system-random.ts";

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
 * Verifies the snapshot whose manifest has this digest. It shows that the history is whole and signed; that the control plane
 * has committed it, and that none is newer, only the control plane can show. Throws `snapshot/chain-refused`,
 * `snapshot/refused`, `snapshot/missing`, `key-wrapping/…` or `store/failed`.
 */
export async function verifySnapshotIn(
  { store, tenantKeys }: Pick<SnapshotStorage, "store" | "tenantKeys">,
  text: string,
  root: KeyObject,
): Promise<VerifiedSnapshot> {
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new UsageError("--snapshot takes the whole digest of a snapshot, 64 characters");
  const digest = parseDigest(text);
  const { objects, bytes } = await find({ store, tenantKeys }, digest);
  const signed = Buffer.from(bytes).toString("utf8");
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

/** Sealed with which tenant's key, of which version, is not to be seen from outside: each is tried. */
async function find(
  { store, tenantKeys }: Pick<SnapshotStorage, "store" | "tenantKeys">,
  digest: Digest,
): Promise<{ readonly objects: ObjectStore; readonly bytes: Uint8Array }> {
  const snapshots = snapshotStore({ store, random: systemRandom });
  for (const tenantId of await tenantKeys.tenants()) {
    for (const keyId of await tenantKeys.versions(tenantId)) {
      const { objects } = snapshots.open(await tenantKeys.find(tenantId, keyId));
      const bytes = await objects.get(digest).catch(missingAsUndefined);
      if (bytes !== undefined) return { objects, bytes };
    }
  }
  throw new SpaceError("snapshot/missing", { digest });
}

function missingAsUndefined(error: unknown): undefined {
  if (!isSpaceError(error, "snapshot/missing")) throw error;
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
