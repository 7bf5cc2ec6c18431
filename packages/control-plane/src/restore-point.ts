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
  type SandboxRecord,
  type SnapshotAnswer,
  type SnapshotLinks,
  type SnapshotManifest,
  SpaceError,
  sameRoute,
  type TenantKeyId,
} from "@space/model";
import type { ControlParts } from "./parts.ts";

/** The newest snapshot of a sandbox, verified. */
export interface RestorePoint {
  readonly manifest: SnapshotManifest;
  readonly digest: Digest;
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
  readVouchedManifest(signed, digest); // says which version it is, where that is known no more
  const manifest = verifyManifest(signed, importPublicKey(stored.executionPublicKey));
  if (manifest.identity.sandboxId !== sandboxId) throw refused("other sandbox");
  return { manifest, digest };
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
