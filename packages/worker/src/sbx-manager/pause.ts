// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  importPublicKey,
  importSigningKey,
  manifestDigest,
  signManifest,
  verifyManifest,
} from "@space/capability";
import {
  type ActivationRecord,
  type ExecutionIdentity,
  identityToJson,
  type MemoryKept,
  manifestVersion,
  type RuntimeRecord,
  type SnapshotAnswer,
  type SnapshotLinks,
  type SnapshotManifest,
  SpaceError,
  type SubstrateAbilities,
  type TenantKey,
} from "@space/model";
import { withCarried } from "./carried.ts";
import { endEpoch, loseExecution, type WorkerParts } from "./parts.ts";
import { storeManifest, verifySealing } from "./snapshot-source.ts";

/** What a snapshot comes after, and the key of its tenant. The key is held for this pause alone. */
interface Sealing {
  readonly follows: SnapshotLinks;
  readonly key: TenantKey;
}

/**
 * Verifies the chain that the snapshot is to seal, then stops admitting, lets short operations end, ends the epoch, flushes, freezes, and makes the snapshot durable. The
 * guest stays frozen, whatever fails after that, until an abort or a retirement. Repeating it goes on where it stopped.
 */
export async function snapshot(
  parts: WorkerParts,
  identity: ExecutionIdentity,
  sealing: Sealing,
): Promise<SnapshotAnswer> {
  const record = parts.executions.installed(identity);
  const { id } = identity.activation;
  const { phase, manifest: made } = parts.executions.live(id);
  const { objects: sealed } = parts.snapshots.open(sealing.key);
  if (made === null) await verifySealing(parts, { record, objects: sealed }, sealing.follows); // before anything is disturbed
  if (phase === "running" || phase === "pausing") await stopAndFreeze(parts, record);
  const frozen = parts.executions.live(id);
  if (frozen.manifest !== null)
    return storedAnswer(parts.substrate, frozen, { signed: frozen.manifest, ...sealing });
  const { abilities } = parts.substrate;
  const carried = abilities.memorySnapshots ? await parts.bridge.carried(id) : undefined;
  const archive = withCarried(carried, parts.substrate.snapshot(frozen.startedAs));
  using draft = sealing.follows.handsOver === true ? parts.handOvers.begin(record.identity) : undefined;
  const { objects, archives } = parts.snapshots.open(sealing.key, draft && { sink: draft });
  const filesystem = await archives.write(archive); // durable in the store: what is held besides only saves time
  const manifest = manifestOf(parts, record, { filesystem, ...sealing });
  const signed = signManifest(importSigningKey(frozen.privateKey.reveal()), manifest);
  await storeManifest(objects, signed);
  parts.executions.change(id, { phase: "snapshotted", manifest: signed });
  draft?.finish(manifestDigest(signed), archives.names(filesystem));
  return { manifest, signed };
}

async function stopAndFreeze(parts: WorkerParts, record: RuntimeRecord): Promise<void> {
  const { identity } = record;
  const { id } = identity.activation;
  const { span } = parts.lease;
  const { startedAs } = parts.executions.change(id, { phase: "pausing" }); // from here on nothing is admitted
  await parts.streams.drained(identity.sandboxId, parts.limits.pauseDrainMs);
  const cutCount = endEpoch(parts, record);
  parts.audit.record("execution/paused", { identity: identityToJson(identity), cutStreams: cutCount });
  await parts.bridge.quiesce(id, parts.limits.quiesceMs, parts.substrate.abilities.memorySnapshots);
  if (!(await parts.substrate.freeze(startedAs, "snapshot")))
    throw lost(parts, parts.executions.live(id), "freeze");
  // one that was frozen for want of a lease goes on when there is one again: that is not this pause's freeze.
  parts.lease.requireSince(span);
  parts.executions.change(id, { phase: "frozen" });
}

function manifestOf(
  parts: WorkerParts,
  record: RuntimeRecord,
  { follows, key, filesystem }: Sealing & Pick<SnapshotManifest, "filesystem">,
): SnapshotManifest {
  return {
    version: manifestVersion,
    identity: record.identity,
    certificate: record.certificateDigest,
    previousManifest: follows.previousManifest,
    chain: follows.chain,
    keyId: key.keyId,
    substrate: parts.substrateName,
    memory: memoryKept(parts.substrate.abilities, follows),
    filesystem,
    createdAtSeconds: Math.floor(parts.clock.wallMs() / 1000),
  };
}

function memoryKept(
  { memorySnapshots, freeze }: SubstrateAbilities,
  { goesOn = false }: SnapshotLinks,
): MemoryKept {
  if (memorySnapshots) return "in-snapshot";
  return freeze && !goesOn ? "frozen-on-worker" : "none";
}

function storedAnswer(
  { abilities }: WorkerParts["substrate"],
  { publicKey }: ActivationRecord,
  { signed, follows, key }: Sealing & { readonly signed: string },
): SnapshotAnswer {
  const manifest = verifyManifest(signed, importPublicKey(publicKey));
  const { previousManifest, chain } = follows;
  const isSame = manifest.previousManifest === previousManifest && manifest.chain === chain;
  const isKept = manifest.memory === memoryKept(abilities, follows);
  if (isSame && isKept && manifest.keyId === key.keyId) return { manifest, signed };
  throw new SpaceError("snapshot/refused", { problem: "the snapshot follows another manifest" });
}

/** A pause that lost, or a snapshot of what goes on: the frozen guest really runs, then admits again under the same identity, in a new epoch. */
export async function abortPause(parts: WorkerParts, identity: ExecutionIdentity): Promise<void> {
  const record = parts.executions.installed(identity);
  const activation = parts.executions.live(identity.activation.id);
  if (activation.phase === "running") return;
  if (activation.manifest !== null) parts.handOvers.drop(manifestDigest(activation.manifest));
  if (!(await parts.substrate.thaw(activation.startedAs))) throw lost(parts, activation, "thaw");
  await adoptAgain(parts, activation);
  endEpoch(parts, record); // what the pause cut is not revived
  parts.executions.change(identity.activation.id, { phase: "running", manifest: null });
  parts.audit.record("execution/pause-aborted", { identity: identityToJson(identity) });
}

/** A bridge that is away says nothing of the guest, which is not lost for it: whoever asks again finds the next one. */
async function adoptAgain({ bridge }: WorkerParts, activation: ActivationRecord): Promise<void> {
  try {
    await bridge.adopt(activation);
  } catch (error) {
    throw bridge.connected ? error : new SpaceError("link/closed", {}, { cause: error });
  }
}

function lost(parts: WorkerParts, activation: ActivationRecord, step: string): SpaceError {
  loseExecution(parts, activation, `gone at ${step}`);
  return new SpaceError("substrate/failed", { step });
}
