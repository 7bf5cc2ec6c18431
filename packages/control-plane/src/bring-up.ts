// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivateRequest,
  type ChangeOutcome,
  type ChangeReason,
  compareIdentity,
  firstGeneration,
  type PublishedCertificate,
  type SandboxRecord,
  type SideEffect,
  SpaceError,
  unreachable,
  type WorkerHandle,
} from "@space/model";
import { awaitPredecessors } from "./await-predecessors.ts";
import { codeOf, notFound, takenOver, workerFailure } from "./failures.ts";
import { type ControlParts, leave } from "./parts.ts";
import type { RestoreFrom } from "./restore-point.ts";
import { retirementsOf } from "./retirements.ts";
import { storeSeal } from "./sealed-chain.ts";

/** One execution to start: its row is `creating` or `resuming`, and claimed by the caller. */
export interface BringUp {
  readonly record: SandboxRecord;
  readonly worker: WorkerHandle;
  /** The verified snapshot to begin from. */
  readonly from: RestoreFrom | undefined;
  /** Of the run, from the moment that it runs; null: the sandbox is moved, and its start and end stay as they are. */
  readonly timeoutMs: number | null;
}

/**
 * Activate, certify, install, publish: in this order, so that nothing is served before it is durable on both sides.
 * Whatever fails is torn down before the claim is given back, or by an order that will reach the worker. A sandbox
 * that was killed meanwhile is never published (incident 17). Throws the worker's failure or `sandbox/not-found`.
 */
export async function bringUp(parts: ControlParts, plan: BringUp): Promise<SandboxRecord> {
  const { record } = plan;
  let outcome: ChangeOutcome;
  try {
    const certificate = await start(parts, plan);
    outcome = await publish(parts, plan, certificate);
  } catch (cause) {
    return endOf(parts, record, cause);
  }
  if (outcome.kind !== "won") return endOf(parts, record, notFound(record.sandboxId));
  void parts.feeds.deliver(outcome.effects);
  return outcome.record;
}

/** What became of a start that could not be published: it was all the same, or why not is thrown. */
async function endOf(parts: ControlParts, record: SandboxRecord, cause: unknown): Promise<SandboxRecord> {
  const end = await giveUp(parts, record, `failed: ${codeOf(cause)}`);
  switch (end.kind) {
    case "published":
      return end.record;
    case "killed":
      throw notFound(record.sandboxId);
    case "taken-over":
      throw takenOver(parts.limits.claimMs);
    case "given-up":
    case "left":
      throw workerFailure(cause, "start");
    default:
      return unreachable(end);
  }
}

async function start(parts: ControlParts, plan: BringUp): Promise<PublishedCertificate> {
  const { record, worker, from } = plan;
  const { identity } = record.execution;
  // also where the claim was written before, by a move or by whoever drove it until now.
  if (record.generation > 1n) await awaitPredecessors(parts, record, worker.workerId);
  // An order of an earlier generation that reached this worker later would meet the new one.
  if (record.generation > 1n && !(await parts.feeds.flush(worker.workerId, record.sandboxId))) {
    throw new SpaceError("worker/unreachable", { workerId: worker.workerId });
  }
  const { publicKey } = await worker.control.activate({
    identity,
    tenantId: record.tenantId,
    template: record.template,
    limits: record.limits,
    variables: record.variables,
    ...(from === undefined ? {} : { from: await sourceOf(parts, plan, from) }),
  });
  const certificate = parts.signer.certificate(identity, {
    publicKey,
    previous: record.certificateHead,
    restoredFrom: from?.digest ?? null,
    origin: record.generation === firstGeneration ? record.origin : null,
  });
  await parts.feeds.install(worker.workerId, certificate.token);
  return certificate;
}

async function sourceOf(
  parts: ControlParts,
  { record, worker }: BringUp,
  { manifest, digest, memory, key, seal, heldAt }: RestoreFrom,
): Promise<NonNullable<ActivateRequest["from"]>> {
  if (seal === undefined) {
    const head = parts.signer.originGrant(record);
    return { manifest, digest, memory, key, head, since: null };
  }
  await storeSeal(parts, seal, key);
  const { digest: newest } = seal.end;
  const head = parts.signer.chainHead(record, "resume");
  const since = newest === manifest.chain ? null : newest;
  const source = { manifest, digest, memory, key, head, since };
  if (heldAt === undefined) return source;
  // signed last, so that its time is that of the transfer. The manifest is committed, and its execution retired.
  const grant = parts.signer.handOver(manifest.identity, digest, worker.workerId);
  return { ...source, peer: { ...heldAt.endpoint, grant } };
}

function publish(
  parts: ControlParts,
  { record, worker, timeoutMs }: BringUp,
  certificate: PublishedCertificate,
): Promise<ChangeOutcome> {
  const { snapshot, sandboxId } = record;
  // Frozen processes of the old generation elsewhere never go on; here the worker has ended or continued them.
  const stranded = snapshot?.frozenOn ?? worker.workerId;
  const effects: readonly SideEffect[] =
    snapshot === null || stranded === worker.workerId
      ? []
      : [{ kind: "discard", sandboxId, workerId: stranded, manifest: snapshot.digest }];
  return parts.sandboxes.change({
    on: record,
    change: { kind: "publish", certificate, ...timesOf(parts, record, timeoutMs) },
    effects,
    why: "done",
  });
}

function timesOf(
  { clock }: ControlParts,
  { startedAtMs, endAtMs }: SandboxRecord,
  timeoutMs: number | null,
): { readonly startedAtMs: number; readonly endAtMs: number } {
  if (timeoutMs === null) return { startedAtMs, endAtMs };
  const nowMs = clock.wallMs();
  return { startedAtMs: nowMs, endAtMs: nowMs + timeoutMs };
}

export type GivenUp =
  | { readonly kind: "given-up" | "killed" | "left" | "taken-over" }
  | { readonly kind: "published"; readonly record: SandboxRecord };

/**
 * Gives the claim back with the order to tear down. A new sandbox has failed; one that was resuming is paused again, and
 * intact. Never throws: with a store that cannot be written the sandbox is left to the recovery.
 */
export async function giveUp(
  parts: ControlParts,
  record: SandboxRecord,
  why: ChangeReason,
): Promise<GivenUp> {
  const effects = retirementsOf(record.execution);
  const reason = why;
  try {
    const outcome = await parts.sandboxes.change({
      on: record,
      change: record.state === "creating" ? { kind: "fail", reason } : { kind: "abandon-resume", reason },
      effects,
      why,
    });
    if (outcome.kind === "won") {
      void parts.feeds.deliver(outcome.effects);
      return { kind: "given-up" };
    }
    const latest = await parts.sandboxes.read(record.sandboxId);
    if (latest !== undefined && serves(latest, record)) return { kind: "published", record: latest };
    // its process is driven by another replica now, and must not be ended by this one's late word.
    if (latest !== undefined && isLaterAttempt(latest, record)) return { kind: "taken-over" };
    await parts.feeds.enqueue(effects);
    return { kind: "killed" };
  } catch (error) {
    leave(parts, record.sandboxId, "give up", error);
    return { kind: "left" };
  }
}

/** Whether the claimed execution was published: a write whose answer was lost is a write all the same. */
function serves({ state, execution }: SandboxRecord, claimed: SandboxRecord): boolean {
  const { identity } = claimed.execution;
  const isOpen = state === "running" || state === "pausing";
  return isOpen && compareIdentity(execution.identity, identity) === "identical";
}

function isLaterAttempt({ execution }: SandboxRecord, claimed: SandboxRecord): boolean {
  const { id, attempt } = claimed.execution.identity.activation;
  const now = execution.identity.activation;
  return execution.state !== "ended" && now.id === id && now.attempt > attempt;
}
