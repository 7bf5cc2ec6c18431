// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import {
  type ApiCaller,
  type BeginOutcome,
  type ConnectedSandbox,
  type CreateSandbox,
  type Digest,
  type ExecutionIdentity,
  firstGeneration,
  type KeptSnapshot,
  type NewSandbox,
  newActivationId,
  newSandboxId,
  parseDigest,
  placementOn,
  type SandboxId,
  type SandboxOrigin,
  type SandboxRecord,
  SpaceError,
  type TenantId,
  unreachable,
  type WorkerHandle,
  type WorkerId,
} from "@space/model";
import { bringUp } from "./bring-up.ts";
import { checkTimeout } from "./check-timeout.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import { readKept } from "./restore-point.ts";
import { connectedView } from "./sandbox-view.ts";
import { findKept } from "./snapshot-operations.ts";
import { awaitTurn, startWaiting } from "./turns.ts";

/** A new sandbox, running. Throws `template/not-found`, `limit/sandboxes`, `worker/none-free`, the worker's failures, and what a restore throws. */
export async function createSandbox(
  parts: ControlParts,
  caller: ApiCaller,
  request: CreateSandbox,
): Promise<ConnectedSandbox> {
  checkTimeout(parts, request.timeoutMs);
  const { idempotencyKey: key, workerId } = request;
  const { template, from } = await resolveTemplate(parts, caller, request.template);
  const limits = from?.kept.limits ?? parts.limits.execution;
  const variables = { ...from?.kept.variables, ...request.variables };
  const outcome = await beginSandbox(parts, {
    tenantId: caller.tenantId,
    shape: { ...request, template, limits, variables },
    ...(from && { from }),
    ...(workerId === undefined ? {} : { workerId }),
    ...(key === undefined ? {} : { idempotency: { key, fingerprint: fingerprintOf(request) } }),
  });
  if (outcome.kind === "running") return connectedView(outcome.record, parts.tokens, false);
  if (outcome.fingerprint !== fingerprintOf(request))
    throw new SpaceError("input/invalid", {
      field: "idempotencyKey",
      problem: "was used for another request",
    });
  return firstAnswer(parts, outcome.sandboxId);
}

/** The template that a name means to the tenant, or else its snapshot. Throws `template/not-found`. */
async function resolveTemplate(
  parts: ControlParts,
  { tenantId }: ApiCaller,
  text: string,
): Promise<{ readonly template: string; readonly from?: Beginning["from"] }> {
  const template = await parts.installation.findTemplate(tenantId, text);
  if (template !== undefined) return { template };
  const kept = await findKept(parts, tenantId, text);
  if (kept === undefined) throw new SpaceError("template/not-found", { template: text });
  return { template: kept.snapshotId, from: { kind: "template", kept } };
}

export interface Beginning {
  readonly tenantId: TenantId;
  readonly shape: Omit<
    NewSandbox,
    "tenantId" | "identity" | "claim" | "createdAtMs" | "endAtMs" | "origin" | "idempotency"
  >;
  /** The snapshot that it begins with; absent: it begins empty. */
  readonly from?: { readonly kind: "fork" | "template"; readonly kept: KeptSnapshot };
  readonly workerId?: WorkerId;
  readonly idempotency?: NonNullable<NewSandbox["idempotency"]>;
}

export type BegunSandbox =
  | { readonly kind: "running"; readonly record: SandboxRecord }
  | Extract<BeginOutcome, { readonly kind: "repeated" }>;

/** A new row, and what it says started. Throws as {@link createSandbox}. */
export async function beginSandbox(parts: ControlParts, beginning: Beginning): Promise<BegunSandbox> {
  const from = beginning.from && (await readKept(parts, beginning.from.kept));
  const placement = await parts.placements.choose(beginning.workerId);
  const { worker } = placement;
  const outcome = await begin(parts, beginning, worker).finally(() => placement.release());
  switch (outcome.kind) {
    case "begun": {
      const { sandboxId, timeoutMs } = outcome.record;
      const plan = { record: outcome.record, worker, from, timeoutMs };
      const record = await parts.transitions.run(sandboxId, "create", () => bringUp(parts, plan));
      return { kind: "running", record };
    }
    case "limit":
      throw new SpaceError("limit/sandboxes", { limit: outcome.limit });
    case "origin-gone":
      throw new SpaceError("template/not-found", { template: beginning.from?.kept.snapshotId ?? "" });
    case "repeated":
      return outcome;
    default:
      return unreachable(outcome);
  }
}

function begin(
  parts: ControlParts,
  { tenantId, shape, from, idempotency }: Beginning,
  worker: WorkerHandle,
): Promise<BeginOutcome> {
  const nowMs = parts.clock.wallMs();
  const { onTimeout, keepMemory, autoResume, autoRecover, timeoutMs } = shape;
  return parts.sandboxes.begin({
    identity: firstIdentity(parts, worker),
    tenantId,
    template: shape.template,
    createdAtMs: nowMs,
    endAtMs: nowMs + timeoutMs,
    onTimeout,
    keepMemory,
    autoResume,
    autoRecover,
    timeoutMs,
    metadata: shape.metadata,
    variables: shape.variables,
    limits: shape.limits,
    claim: newClaim(parts),
    ...(from && { origin: originOf(from) }),
    ...(idempotency && { idempotency }),
  });
}

function originOf({ kind, kept }: NonNullable<Beginning["from"]>): SandboxOrigin {
  return { kind, snapshotId: kept.snapshotId, parentManifest: kept.digest };
}

function firstIdentity(parts: ControlParts, worker: WorkerHandle): ExecutionIdentity {
  return {
    sandboxId: newSandboxId(parts.random),
    generation: firstGeneration,
    placement: placementOn(worker),
    activation: { id: newActivationId(parts.random), attempt: 1 },
  };
}

/** What the first request with the same key got, or gets. It is gone when that one failed: then a new try is needed. */
async function firstAnswer(parts: ControlParts, sandboxId: SandboxId): Promise<ConnectedSandbox> {
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await parts.sandboxes.read(sandboxId);
    if (record?.state !== "creating") {
      if (record === undefined || record.state === "failed") {
        throw new SpaceError("substrate/failed", { step: "first request" });
      }
      return connectedView(record, parts.tokens, false);
    }
    await awaitTurn(parts, sandboxId, waiting);
  }
}

/** Of everything that was asked for, members in one order. */
function fingerprintOf(request: CreateSandbox): Digest {
  const sorted = (map: Readonly<Record<string, string>>): unknown =>
    Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const { template, timeoutMs, onTimeout, keepMemory, autoResume, autoRecover, workerId = null } = request;
  const facts = [template, timeoutMs, onTimeout, keepMemory, autoResume, autoRecover, workerId];
  const text = JSON.stringify([...facts, sorted(request.metadata), sorted(request.variables)]);
  return parseDigest(createHash("sha256").update(text).digest("hex"));
}
