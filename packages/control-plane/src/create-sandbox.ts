// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import {
  type ApiCaller,
  type ConnectedSandbox,
  type CreateSandbox,
  type Digest,
  type ExecutionIdentity,
  firstGeneration,
  newActivationId,
  newSandboxId,
  parseDigest,
  placementOn,
  type SandboxId,
  SpaceError,
  unreachable,
  type WorkerHandle,
} from "@space/model";
import { bringUp } from "./bring-up.ts";
import { checkTimeout } from "./check-timeout.ts";
import { type ControlParts, newClaim } from "./parts.ts";
import { connectedView } from "./sandbox-view.ts";
import { awaitTurn, startWaiting } from "./turns.ts";

/** A new sandbox, running. Throws `template/not-found`, `limit/sandboxes`, `worker/none-free` and the worker's failures. */
export async function createSandbox(
  parts: ControlParts,
  caller: ApiCaller,
  request: CreateSandbox,
): Promise<ConnectedSandbox> {
  checkTimeout(parts, request.timeoutMs);
  const template = await parts.installation.findTemplate(caller.tenantId, request.template);
  if (template === undefined) throw new SpaceError("template/not-found", { template: request.template });
  const placement = await parts.placements.choose(request.workerId);
  const { worker } = placement;
  const outcome = await begin(parts, { caller, request, template, worker }).finally(() => {
    placement.release();
  });
  switch (outcome.kind) {
    case "begun": {
      const { record } = outcome;
      const plan = { record, worker, from: undefined, timeoutMs: request.timeoutMs };
      const running = await parts.transitions.run(record.sandboxId, "create", () => bringUp(parts, plan));
      return connectedView(running, parts.tokens, false);
    }
    case "limit":
      throw new SpaceError("limit/sandboxes", { limit: outcome.limit });
    case "repeated":
      if (outcome.fingerprint !== fingerprintOf(request)) {
        throw new SpaceError("input/invalid", {
          field: "idempotencyKey",
          problem: "was used for another request",
        });
      }
      return firstAnswer(parts, outcome.sandboxId);
    default:
      return unreachable(outcome);
  }
}

interface Beginning {
  readonly caller: ApiCaller;
  readonly request: CreateSandbox;
  readonly template: string;
  readonly worker: WorkerHandle;
}

function begin(parts: ControlParts, { caller, request, template, worker }: Beginning) {
  const nowMs = parts.clock.wallMs();
  const { idempotencyKey: key } = request;
  return parts.sandboxes.begin({
    identity: firstIdentity(parts, worker),
    tenantId: caller.tenantId,
    template,
    createdAtMs: nowMs,
    endAtMs: nowMs + request.timeoutMs,
    onTimeout: request.onTimeout,
    keepMemory: request.keepMemory,
    autoResume: request.autoResume,
    autoRecover: request.autoRecover,
    timeoutMs: request.timeoutMs,
    metadata: request.metadata,
    variables: request.variables,
    limits: parts.limits.execution,
    claim: newClaim(parts),
    ...(key === undefined ? {} : { idempotency: { key, fingerprint: fingerprintOf(request) } }),
  });
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
