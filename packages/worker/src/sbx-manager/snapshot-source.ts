// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  certificateDigest,
  importPublicKey,
  manifestDigest,
  readVouchedCertificate,
  verifyChainHead,
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
 * Verifies the snapshot that an activation is to begin from, before anything is started: the signed head of the
 * sandbox's chain names this very manifest; it is signed by the execution that the certificate in it belongs to; and
 * every chunk is there. The certificate is vouched for by its digest in what the head names, so the key that signed it
 * may have been removed since (R-10). The chunks' bytes are verified as they are read. Throws `snapshot/refused`,
 * `snapshot/missing` or `store/failed`.
 */
export async function verifySource(
  parts: WorkerParts,
  request: ActivateRequest,
  from: NonNullable<ActivateRequest["from"]>,
): Promise<SnapshotManifest> {
  checkHead(parts, request, from);
  const signed = await readToken(parts, from.digest);
  if (manifestDigest(signed) !== from.digest) throw refused("digest");
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

/** the control plane's signed word that this is the newest snapshot of this sandbox (incident 33). */
function checkHead(
  { keys }: WorkerParts,
  { identity }: ActivateRequest,
  { head, digest }: NonNullable<ActivateRequest["from"]>,
): void {
  try {
    const { sandboxId, manifest } = verifyChainHead(head, keys.ring);
    if (sandboxId !== identity.sandboxId) throw refused("other sandbox");
    if (manifest !== digest) throw refused("not the newest");
  } catch (cause) {
    const isRefused = isSpaceError(cause, "chain/refused") || isSpaceError(cause, "certificate/refused");
    if (!isRefused) throw cause;
    throw new SpaceError("snapshot/refused", { problem: "head" }, { cause });
  }
}

/** The bytes are those that the head names. So is then the certificate, by its digest in them. */
async function verifySigned(parts: WorkerParts, signed: string): Promise<SnapshotManifest> {
  const digest = claimedCertificate(signed);
  const certificate = await readToken(parts, digest);
  try {
    const { publicKey, identity } = readVouchedCertificate(certificate, digest);
    const manifest = verifyManifest(signed, importPublicKey(publicKey));
    if (manifest.certificate !== digest) throw refused("certificate is another");
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
