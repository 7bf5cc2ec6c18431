// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  certificateDigest,
  importPublicKey,
  manifestDigest,
  verifyCertificate,
  verifyManifest,
} from "@space/capability";
import {
  type ActivateRequest,
  compareIdentity,
  type Digest,
  identityToJson,
  isSpaceError,
  parseDigest,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import type { WorkerParts } from "./parts.ts";

/**
 * Verifies the snapshot that an activation is to begin from, before anything is started: the signed manifest whose
 * digest the control plane named, signed by the execution that the certificate in it belongs to, and every chunk there.
 * The chunks' bytes are verified as they are read. Throws `snapshot/refused`, `snapshot/missing` or `store/failed`.
 */
export async function verifySource(
  parts: WorkerParts,
  request: ActivateRequest,
  from: NonNullable<ActivateRequest["from"]>,
): Promise<SnapshotManifest> {
  const signed = await readToken(parts, from.digest);
  const manifest = await verifySigned(parts, signed);
  if (manifestText(manifest) !== manifestText(from.manifest)) throw refused("manifest is another");
  const { sandboxId, generation } = request.identity;
  if (manifest.identity.sandboxId !== sandboxId) throw refused("other sandbox");
  if (manifest.identity.generation >= generation) throw refused("order of generations");
  if (manifest.substrate !== parts.substrateName) throw refused("other substrate");
  const missing = await parts.archives.missing(manifest.filesystem);
  if (missing !== undefined) throw new SpaceError("snapshot/missing", { digest: missing });
  return manifest;
}

async function verifySigned(parts: WorkerParts, signed: string): Promise<SnapshotManifest> {
  // The certificate's digest is read from the manifest before its signature is checked, and is only used to find the key.
  const certificate = await readToken(parts, claimedCertificate(signed));
  try {
    const { publicKey, identity } = verifyCertificate(certificate, parts.keys.ring);
    const manifest = verifyManifest(signed, importPublicKey(publicKey));
    if (manifest.certificate !== certificateDigest(certificate)) throw refused("certificate is another");
    if (compareIdentity(manifest.identity, identity) !== "identical") throw refused("identity is another");
    return manifest;
  } catch (cause) {
    if (isSpaceError(cause, "certificate/refused") || isSpaceError(cause, "input/invalid"))
      throw new SpaceError("snapshot/refused", { problem: "certificate" }, { cause });
    throw cause;
  }
}

function claimedCertificate(signed: string): Digest {
  try {
    const payload: unknown = JSON.parse(
      Buffer.from(signed.split(".")[1] ?? "", "base64url").toString("utf8"),
    );
    if (typeof payload === "object" && payload !== null && "certificate" in payload)
      return parseDigest(payload.certificate);
  } catch {
    // refused below, like a payload without the member
  }
  throw refused("form");
}

/** A token by the digest of its bytes. */
async function readToken(parts: WorkerParts, digest: Digest): Promise<string> {
  return Buffer.from(await parts.objects.get(digest)).toString("utf8");
}

/** What a later restore on any worker needs besides the chunks. Returns the manifest's digest. */
export async function storeSource(parts: WorkerParts, signed: string, certificate: string): Promise<Digest> {
  const digest = manifestDigest(signed);
  await parts.objects.put(certificateDigest(certificate), Buffer.from(certificate));
  await parts.objects.put(digest, Buffer.from(signed));
  return digest;
}

/** Members in one order, so that equal manifests have equal text. */
function manifestText(manifest: SnapshotManifest): string {
  const { version, identity, certificate, previousManifest, substrate, memory, createdAtSeconds } = manifest;
  return JSON.stringify([
    version,
    identityToJson(identity),
    certificate,
    previousManifest,
    substrate,
    memory,
    createdAtSeconds,
    manifest.filesystem.map(({ digest, sizeBytes }) => [digest, sizeBytes]),
  ]);
}

function refused(problem: string): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}
