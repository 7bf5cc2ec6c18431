// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { exportSigningKey, manifestDigest, newSigningKey, publicKeyText } from "@space/capability";
import {
  type ActivateAnswer,
  type ActivateRequest,
  type ActivationRecord,
  type EndpointEvidence,
  identityToJson,
  isSpaceError,
  Secret,
  SpaceError,
  sameRoute,
} from "@space/model";
import { type TakenApart, takeApart } from "./carried.ts";
import { isPlacedHere, stopExecution, type WorkerParts } from "./parts.ts";
import type { PeerChunks } from "./peer-chunks.ts";
import { type VerifiedSource, verifySource } from "./snapshot-source.ts";

const secretBytes = 32;

/**
 * Starts an execution, or lets a frozen one go on, as this identity. It serves nobody before its certificate is
 * installed. Repeating it gives the same answer. Whatever fails leaves nothing behind.
 */
export async function activate(parts: WorkerParts, request: ActivateRequest): Promise<ActivateAnswer> {
  checkPlacement(parts, request);
  const repeated = repeat(parts, request);
  if (repeated !== undefined) return answer(repeated);
  requireFirstAttempt(request);
  checkOrder(parts, request);
  parts.bridge.requireConnection(); // nothing is started, and nothing thawed, that could not be adopted
  await stopAbandoned(parts, request);
  const source = request.from && (await verifySource(parts, request, request.from));
  const activation = (await goOn(parts, request)) ?? (await start(parts, request, source));
  const { identity, memory } = activation;
  parts.audit.record("execution/activated", { identity: identityToJson(identity), memory });
  return answer(activation);
}

function answer({ publicKey, memory }: ActivationRecord): ActivateAnswer {
  return { publicKey, memory };
}

function checkPlacement(parts: WorkerParts, { identity }: ActivateRequest): void {
  if (isPlacedHere(parts, identity.placement)) return;
  throw new SpaceError("input/invalid", { field: "placement", problem: "is not this worker's" });
}

/** the same process again; another attempt is remembered. */
function repeat(parts: WorkerParts, { identity }: ActivateRequest): ActivationRecord | undefined {
  const { id, attempt } = identity.activation;
  const held = parts.executions.find(id);
  if (held === undefined) return undefined;
  if (!sameRoute(held.identity, identity) || held.phase !== "running") throw conflict(held, identity);
  return attempt > held.identity.activation.attempt ? parts.executions.change(id, { identity }) : held;
}

/** a later attempt drives the process that there is; where there is none, only the next generation starts one. */
function requireFirstAttempt({ identity: { sandboxId, activation } }: ActivateRequest): void {
  if (activation.attempt > 1) throw new SpaceError("record/absent", { sandboxId });
}

/** a generation that was ever installed or started here is not started again. */
function checkOrder(parts: WorkerParts, { identity }: ActivateRequest): void {
  const record = parts.records.read(identity.sandboxId);
  if (record !== undefined && record.identity.generation >= identity.generation)
    throw conflict(record, identity);
  for (const other of parts.executions.ofSandbox(identity.sandboxId)) {
    if (other.identity.generation >= identity.generation) throw conflict(other, identity);
  }
}

function conflict(
  { identity: held }: Pick<ActivationRecord, "identity">,
  offered: ActivateRequest["identity"],
): SpaceError {
  const generations = { installed: held.generation, offered: offered.generation };
  const code = held.generation > offered.generation ? "record/stale" : "record/conflict";
  return new SpaceError(code, { sandboxId: offered.sandboxId, ...generations });
}

/** Starts of lower generations that were never installed have been given up. */
async function stopAbandoned(parts: WorkerParts, { identity }: ActivateRequest): Promise<void> {
  const installed = parts.records.read(identity.sandboxId)?.identity.activation.id;
  for (const other of parts.executions.ofSandbox(identity.sandboxId)) {
    const isInstalled = other.identity.activation.id === installed;
    if (!isInstalled && other.phase !== "kept") await stopExecution(parts, other, "start given up");
  }
}

/** A process kept frozen under exactly this snapshot goes on; undefined when there is none any more. */
async function goOn(parts: WorkerParts, request: ActivateRequest): Promise<ActivationRecord | undefined> {
  const { from, identity } = request;
  if (from?.memory !== "frozen-on-worker") return undefined;
  const kept = parts.executions
    .ofSandbox(identity.sandboxId)
    .find(
      ({ phase, manifest }) =>
        phase === "kept" && manifest !== null && manifestDigest(manifest) === from.digest,
    );
  if (kept === undefined) return undefined;
  const next = newActivation(parts, request, { ...kept, memory: true });
  try {
    if (!(await parts.substrate.thaw(kept.startedAs)))
      throw new SpaceError("substrate/failed", { step: "thaw" });
    await parts.bridge.rekey(kept, next);
    parts.executions.goOn(kept.identity.activation.id, next);
    return next;
  } catch (error) {
    // It may have run for a moment, so it is no longer the snapshot's: it never goes on, the files do.
    await stopExecution(parts, kept, "could not go on");
    if (!isSpaceError(error, "substrate/failed") && !isSpaceError(error, "endpoint/mismatch")) throw error;
    return undefined;
  }
}

async function start(
  parts: WorkerParts,
  request: ActivateRequest,
  source: VerifiedSource | undefined,
): Promise<ActivationRecord> {
  const { activation, sandboxId } = request.identity;
  if (parts.executions.count >= parts.capacity) throw new SpaceError("worker/none-free", {});
  const activationSecret = newSecret(parts);
  const starting = parts.executions.beginStart(activation.id);
  let taken: TakenApart | undefined;
  if (source?.nearer !== undefined) beginReading(parts, source.nearer);
  try {
    taken = source && (await takeApart(source.archives.read(source.manifest.filesystem)));
    const { evidence } = await parts.substrate.start({
      sandboxId,
      activationId: activation.id,
      activationSecret,
      hostname: sandboxId,
      limits: request.limits,
      ...(taken && { filesystem: taken.archive }),
    });
    // What such a snapshot holds of files cannot be had without its memory: more is kept than was asked for, and said so.
    const memory = source?.manifest.memory === "in-snapshot";
    const started = { startedAs: activation.id, evidence, memory };
    const next = newActivation(parts, request, started, activationSecret);
    try {
      const isFirst = request.identity.generation === 1n && source === undefined;
      await parts.bridge.adopt(next, { isFirst, carried: taken?.carried });
      if (starting.exited) throw new SpaceError("substrate/failed", { step: "exited" });
      parts.executions.add(next);
      return next;
    } catch (error) {
      await stopExecution(parts, next, "start given up");
      throw error;
    }
  } finally {
    await taken?.close();
    if (source?.nearer !== undefined) endReading(parts, source, source.nearer);
    parts.executions.endStart(activation.id);
  }
}

function beginReading({ reading, limits }: WorkerParts, nearer: PeerChunks): void {
  if (reading.size >= limits.peers) nearer.giveUp("too many");
  else reading.add(nearer);
}

/** Says where the chunks came from, if any were needed. */
function endReading(
  parts: WorkerParts,
  { manifest: { identity } }: VerifiedSource,
  nearer: PeerChunks,
): void {
  nearer.close();
  parts.reading.delete(nearer);
  const { manifest, source, direct, stored, problem } = nearer.outcome;
  if (direct + stored === 0) return;
  parts.counters.chunksReceived += direct;
  parts.counters.chunksNotReceived += stored;
  const { sandboxId } = identity;
  parts.audit.record("hand-over/received", { sandboxId, manifest, source, direct, stored, problem });
}

/** each execution has its own key pair, made here; the private key never leaves this worker. */
function newActivation(
  parts: WorkerParts,
  request: ActivateRequest,
  process: Pick<ActivationRecord, "startedAs" | "memory"> & { readonly evidence: EndpointEvidence },
  activationSecret = newSecret(parts),
): ActivationRecord {
  const key = newSigningKey();
  return {
    identity: request.identity,
    phase: "running",
    startedAs: process.startedAs,
    privateKey: new Secret(exportSigningKey(key)),
    publicKey: publicKeyText(key.publicKey),
    activationSecret,
    template: request.template,
    variables: request.variables,
    evidence: process.evidence,
    restoredFrom: request.from?.digest ?? null,
    memory: process.memory,
    manifest: null,
  };
}

function newSecret(parts: WorkerParts): Secret<Uint8Array> {
  return new Secret(parts.random.bytes(secretBytes));
}
