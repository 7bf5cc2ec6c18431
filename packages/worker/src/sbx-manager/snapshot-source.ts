// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChainHead,
  manifestDigest,
  readVouchedManifest,
  type SealedEnd,
  verifyChainHead,
  verifyOriginGrant,
  verifySealedManifest,
} from "@space/capability";
import {
  type ActivateRequest,
  type Digest,
  type ExecutionIdentity,
  firstGeneration,
  identityToJson,
  isSpaceError,
  type ObjectStore,
  type RuntimeRecord,
  type SealedChainProblem,
  type SnapshotLinks,
  type SnapshotManifest,
  SpaceError,
  type TenantSnapshots,
} from "@space/model";
import type { WorkerParts } from "./parts.ts";
import { PeerChunks } from "./peer-chunks.ts";

type Source = NonNullable<ActivateRequest["from"]>;

/** A snapshot that was verified, and where its chunks are. */
export interface VerifiedSource {
  readonly manifest: SnapshotManifest;
  readonly archives: TenantSnapshots["archives"];
  /** The worker that made it, where it is to be asked first. */
  readonly nearer: PeerChunks | undefined;
}

/**
 * Verifies the snapshot that an activation is to begin from, before anything is started: the signed head of the
 * sandbox's chain names this very manifest, or the signed origin of a new sandbox of this tenant does; the chain that is sealed in it is whole and signed, from generation 1 on, by
 * keys that the pinned root vouched for, and the manifest follows it; and every chunk is there. A key that signed an
 * older link may have been removed since (R-10): all of them hang on the head by digests. The chunks' bytes are verified
 * as they are read. Throws `snapshot/chain-refused`, `snapshot/refused`, `snapshot/version`, `snapshot/missing`, `chunk/…` or
 * `store/failed`.
 */
export async function verifySource(
  parts: WorkerParts,
  request: ActivateRequest,
  from: Source,
): Promise<VerifiedSource> {
  const head = readAnchor(parts, request, from);
  if (from.key.tenantId !== request.tenantId) throw refused("other tenant's key");
  const { objects, archives } = parts.snapshots.open(from.key);
  const manifest = await verifyManifestIn(parts, { head, objects }, from);
  if (manifestText(manifest) !== manifestText(from.manifest)) throw refused("manifest is another");
  checkOwner(manifest, request.identity, head);
  if (manifest.substrate !== parts.substrateName) throw refused("other substrate");
  if (manifest.keyId !== from.key.keyId) throw refused("other key");
  const missing = await archives.missing(manifest.filesystem);
  if (missing !== undefined) throw new SpaceError("snapshot/missing", { digest: missing });
  const nearer = readNearer(parts, manifest, from);
  const { archives: read } = parts.snapshots.open(from.key, nearer && { source: nearer });
  return { manifest, archives: read, nearer };
}

/** whom to ask is what the verified manifest says, never an address. */
function readNearer(
  parts: WorkerParts,
  manifest: SnapshotManifest,
  { peer, digest }: Source,
): PeerChunks | undefined {
  const { workerId } = manifest.identity.placement;
  if (peer === undefined || parts.peers === undefined || workerId === parts.workerId) return undefined;
  return new PeerChunks(parts, { manifest: digest, source: workerId }, peer);
}

/** of its own sandbox, of an earlier generation; another sandbox's only where the signed origin has named it. */
function checkOwner(
  { identity: { sandboxId, generation } }: SnapshotManifest,
  restored: ExecutionIdentity,
  head: ChainHead | undefined,
): void {
  const isOwn = sandboxId === restored.sandboxId;
  if (isOwn !== (head !== undefined)) throw refused("other sandbox");
  if (isOwn && generation >= restored.generation) throw refused("order of generations");
}

/** what names the manifest: nothing but a signed origin in generation 1 (undefined then), nothing but the chain's head after it. */
function readAnchor(parts: WorkerParts, request: ActivateRequest, from: Source): ChainHead | undefined {
  if (request.identity.generation !== firstGeneration) return readHead(parts, request, from);
  checkOrigin(parts, request, from);
  return undefined;
}

/** the control plane's signed word that this sandbox of this tenant begins with this very snapshot of another one. */
function checkOrigin({ keys }: WorkerParts, { identity, tenantId }: ActivateRequest, from: Source): void {
  try {
    const grant = verifyOriginGrant(from.head, keys.ring);
    if (grant.sandboxId !== identity.sandboxId) throw chainRefused("other sandbox", "origin");
    if (grant.tenantId !== tenantId) throw refused("other tenant");
    if (grant.origin.parentManifest !== from.digest) throw refused("origin names another manifest");
  } catch (cause) {
    if (!isSpaceError(cause, "chain/refused")) throw cause;
    throw new SpaceError("snapshot/refused", { problem: "origin" }, { cause });
  }
}

/** the control plane's signed word on where this sandbox's chain ends (incident 33). */
function readHead({ keys }: WorkerParts, { identity }: ActivateRequest, { head, digest }: Source): ChainHead {
  try {
    const read = verifyChainHead(head, keys.ring);
    const { sandboxId, manifest } = read;
    if (sandboxId !== identity.sandboxId) throw chainRefused("other sandbox", "head");
    if (manifest !== digest) throw chainRefused("not the newest", "head");
    return read;
  } catch (cause) {
    const isRefused = isSpaceError(cause, "chain/refused") || isSpaceError(cause, "certificate/refused");
    if (!isRefused) throw cause;
    throw new SpaceError("snapshot/refused", { problem: "head" }, { cause });
  }
}

interface Opened {
  readonly head: ChainHead;
  readonly objects: ObjectStore;
}

/** the manifest that the head or the origin names, as what follows the chain that is sealed with it. */
async function verifyManifestIn(
  parts: WorkerParts,
  { head, objects }: { readonly head: ChainHead | undefined; readonly objects: ObjectStore },
  { digest, since }: Source,
): Promise<SnapshotManifest> {
  const signed = Buffer.from(await objects.get(digest)).toString("utf8");
  const { chain } = readVouchedManifest(signed, digest);
  const end = await openSealed(parts, objects, chain);
  if (head !== undefined && end.sandboxId !== head.sandboxId) throw chainRefused("other sandbox", "chain");
  const manifest = verifySealedManifest(signed, end);
  if (head !== undefined) await checkNewest(parts, { head, objects }, { end, since });
  return manifest;
}

/** executions that died without a snapshot stay visible: the chain goes on behind this one, to the newest certificate. */
async function checkNewest(
  parts: WorkerParts,
  { head, objects }: Opened,
  { end, since }: { readonly end: SealedEnd; readonly since: Digest | null },
): Promise<void> {
  if (end.certificate.digest === head.certificate) return;
  if (since === null) throw chainRefused("not the newest", "certificate");
  const now = await openSealed(parts, objects, since);
  const isThere = now.certificate.digest === head.certificate && now.manifest === head.manifest;
  if (!isThere) throw chainRefused("not the newest", "certificate");
}

/**
 * verifies the chain that is about to be sealed in a snapshot of this record: it ends with the very certificate that
 * is installed here, and with the manifest that the snapshot is to follow. So no execution signs over a chain with which
 * its snapshot could not be restored. Throws `snapshot/chain-refused` or `store/failed`.
 */
export async function verifySealing(
  parts: WorkerParts,
  { record, objects }: { readonly record: RuntimeRecord; readonly objects: ObjectStore },
  { chain, previousManifest }: SnapshotLinks,
): Promise<void> {
  const { sandboxId, certificate, manifest } = await openSealed(parts, objects, chain);
  if (sandboxId !== record.identity.sandboxId) throw chainRefused("other sandbox", "chain");
  if (certificate.digest !== record.certificateDigest) throw chainRefused("not the newest", "certificate");
  if (manifest !== previousManifest) throw chainRefused("not the newest", "manifest");
}

function openSealed({ sealed }: WorkerParts, objects: ObjectStore, digest: Digest): Promise<SealedEnd> {
  return sealed.open(digest, (name) => objects.get(name));
}

/** What a later restore on any worker needs besides the chain and the chunks. */
export async function storeManifest(objects: ObjectStore, signed: string): Promise<void> {
  await objects.put(manifestDigest(signed), Buffer.from(signed));
}

/** Members in one order, so that equal manifests have equal text. */
function manifestText(manifest: SnapshotManifest): string {
  const { version, identity, certificate, previousManifest, chain, keyId, substrate, memory } = manifest;
  return JSON.stringify([
    version,
    identityToJson(identity),
    certificate,
    previousManifest,
    chain,
    keyId,
    substrate,
    memory,
    manifest.createdAtSeconds,
    manifest.filesystem.map(({ digest, sizeBytes }) => [digest, sizeBytes]),
  ]);
}

function refused(problem: string): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}

function chainRefused(problem: SealedChainProblem, link: string): SpaceError {
  return new SpaceError("snapshot/chain-refused", { problem, link });
}
