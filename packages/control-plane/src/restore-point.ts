// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  importPublicKey,
  manifestDigest,
  readVouchedManifest,
  verifyCountersigned,
  verifyManifest,
} from "@space/capability";
import {
  type Digest,
  type KeptSnapshot,
  type MemoryKept,
  type SandboxRecord,
  type SnapshotAnswer,
  type SnapshotLinks,
  type SnapshotManifest,
  SpaceError,
  sameRoute,
  type TenantKey,
  type TenantKeyId,
  type WorkerHandle,
} from "@space/model";
import type { ControlParts } from "./parts.ts";
import type { SealPlan } from "./sealed-chain.ts";

/** The newest snapshot of a sandbox, verified. */
export interface RestorePoint {
  readonly manifest: SnapshotManifest;
  readonly digest: Digest;
}

export interface RestoreFrom extends RestorePoint {
  readonly memory: MemoryKept;
  /** That it is sealed with. */
  readonly key: TenantKey;
  /** the sandbox's chain up to now, of executions too that died without a snapshot; undefined for a new one, whose chain is yet to begin. */
  readonly seal: SealPlan | undefined;
  /** The worker that made it and still holds its chunks, where it may be asked for them. */
  readonly heldAt?: WorkerHandle;
}

/**
 * Reads the head that the sandbox's row names and verifies it: countersignature, digest, the execution's own signature.
 * An older or another manifest does not have the head's digest (incident 33). Throws `snapshot/refused`, and
 * `snapshot/version` for one of another version.
 */
export async function readRestorePoint(parts: ControlParts, record: SandboxRecord): Promise<RestorePoint> {
  const { snapshot, sandboxId } = record;
  const stored = snapshot && (await parts.sandboxes.manifest(sandboxId, snapshot.digest));
  if (snapshot === null || stored == null) throw refused("missing");
  // by any key that was ever ours: it is the store that says which manifest is the newest.
  const signed = verifyCountersigned(stored.countersigned, parts.keys.archive);
  const digest = manifestDigest(signed);
  if (digest !== snapshot.digest) throw refused("digest");
  const manifest = verifySigned(signed, { ...stored, digest });
  if (manifest.identity.sandboxId !== sandboxId) throw refused("other sandbox");
  return { manifest, digest };
}

/**
 * Reads a snapshot that new sandboxes begin with, and verifies it as {@link readRestorePoint} does one that its own sandbox
 * goes on from, with its tenant's key. Throws `snapshot/refused`, `snapshot/version`, `tenant-key/missing`.
 */
export async function readKept(
  { keys, tenantKeys }: Pick<ControlParts, "keys" | "tenantKeys">,
  kept: KeptSnapshot,
): Promise<RestoreFrom> {
  const signed = verifyCountersigned(kept.countersigned, keys.archive);
  const manifest = verifySigned(signed, kept);
  if (manifest.identity.sandboxId !== kept.sandboxId) throw refused("other sandbox");
  const key = await tenantKeys.find(kept.tenantId, manifest.keyId);
  return { manifest, digest: kept.digest, memory: kept.memory, key, seal: undefined };
}

/** The manifest of exactly this digest, signed with the execution's key. */
function verifySigned(
  signed: string,
  { digest, executionPublicKey }: { readonly digest: Digest; readonly executionPublicKey: string },
): SnapshotManifest {
  readVouchedManifest(signed, digest); // says which version it is, where that is known no more
  return verifyManifest(signed, importPublicKey(executionPublicKey));
}

/**
 * Verifies what a worker offers as the snapshot of this pausing execution: signed with the execution's key, of exactly
 * its identity and certificate, linked to the present head and its sealed chain, sealed with this key. Throws `snapshot/refused`.
 */
export function verifyOffered(
  { execution, certificateHead }: SandboxRecord,
  offered: SnapshotAnswer,
  { previousManifest, chain, keyId }: SnapshotLinks & { readonly keyId: TenantKeyId },
): RestorePoint {
  if (execution.publicKey === null) throw refused("no key");
  const manifest = verifyManifest(offered.signed, importPublicKey(execution.publicKey));
  const { identity } = execution;
  if (!sameRoute(manifest.identity, identity)) throw refused("other execution");
  if (manifest.identity.activation.id !== identity.activation.id) throw refused("other activation");
  if (manifest.certificate !== certificateHead) throw refused("other certificate");
  if (manifest.previousManifest !== previousManifest) throw refused("previous manifest");
  if (manifest.chain !== chain) throw refused("other chain");
  if (manifest.keyId !== keyId) throw refused("other key");
  if (manifest.substrate !== identity.placement.substrate) throw refused("other substrate");
  return { manifest, digest: manifestDigest(offered.signed) };
}

function refused(problem: string): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}
