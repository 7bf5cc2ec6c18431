// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChangeOutcome,
  type ChangeRequest,
  type Claim,
  type CommittedManifest,
  type ExecutionIdentity,
  type PublishedCertificate,
  type SandboxChange,
  type SandboxId,
  type SandboxState,
  SpaceError,
} from "@space/model";
import type { Parameters, Statements } from "./database.ts";
import { insertKept } from "./kept-snapshots.ts";
import { writeEffects } from "./outbox.ts";
import { integer } from "./row.ts";
import { sandboxById } from "./sandbox-rows.ts";
import { insertSegments } from "./sealed-segments.ts";

const transitional: readonly SandboxState[] = ["creating", "pausing", "resuming", "killing"];

/** The conditional write of one kind of change. */
interface Step {
  readonly from: readonly SandboxState[];
  readonly set: string;
  readonly and?: string;
  readonly parameters?: Parameters;
}

const noClaim = "claim_owner = NULL, claim_until_ms = NULL";
const withClaim = "claim_owner = :owner, claim_until_ms = :untilMs";
const withinLimit = "(SELECT live < sandbox_limit FROM tenants t WHERE t.tenant_id = sandboxes.tenant_id)";

function stepOf(change: SandboxChange): Step {
  switch (change.kind) {
    case "publish":
      return {
        from: ["creating", "resuming"],
        set: `state = 'running', certificate_head = :digest, started_at_ms = :startedAtMs, end_at_ms = :endAtMs,
          frozen_on = NULL, reason = NULL, ${noClaim}`,
        and: "certificate_head IS :previous",
        parameters: {
          digest: change.certificate.digest,
          previous: change.certificate.previous,
          startedAtMs: change.startedAtMs,
          endAtMs: change.endAtMs,
        },
      };
    case "fail":
      return ended(["creating"], `state = 'failed', ${noClaim}`, change.reason);
    case "claim-pause":
      return claimPause(change.claim, 0);
    case "claim-snapshot":
      return claimPause(change.claim, 1);
    case "keep-snapshot":
      return { from: ["pausing"], set: "goes_on = 1", and: "goes_on = 1" };
    case "abort-pause":
      return { from: ["pausing"], set: `state = 'running', ${noClaim}` };
    case "commit-pause":
      return {
        from: ["pausing"],
        set: `state = 'paused', manifest_head = :digest, frozen_on = :frozenOn, end_at_ms = :endAtMs,
          lost_generation = NULL, ${noClaim}`,
        and: "goes_on = 0 AND manifest_head IS :previous",
        parameters: {
          digest: change.manifest.digest,
          previous: change.manifest.previous,
          frozenOn: change.frozenOn,
          endAtMs: change.endAtMs,
        },
      };
    case "commit-move":
      return {
        from: ["pausing"],
        set: `state = 'resuming', generation = generation + 1, manifest_head = :digest, frozen_on = :frozenOn,
          lost_generation = NULL, ${withClaim}`,
        and: "goes_on = 0 AND manifest_head IS :previous AND generation + 1 = :generation",
        parameters: {
          ...change.claim,
          digest: change.manifest.digest,
          previous: change.manifest.previous,
          frozenOn: change.frozenOn,
          generation: change.identity.generation,
        },
      };
    case "claim-resume":
      return {
        from: ["paused", "lost"],
        set: `state = 'resuming', generation = generation + 1, ${withClaim}`,
        and: `manifest_head IS NOT NULL AND generation + 1 = :generation AND ${withinLimit}`,
        parameters: { ...change.claim, generation: change.identity.generation },
      };
    case "abandon-resume":
      // Statement 5: what was lost is lost again, and not taken for a sandbox whose newest state is kept.
      return ended(
        ["resuming"],
        `state = iif(lost_generation IS NULL, 'paused', 'lost'), ${noClaim}`,
        change.reason,
      );
    case "lose":
      return ended(
        ["running", "pausing"],
        `state = 'lost', lost_generation = generation, ${noClaim}`,
        change.reason,
      );
    case "claim-kill":
      return {
        from: ["creating", "running", "pausing", "paused", "resuming", "failed", "lost"],
        set: `state = 'killing', ${withClaim}`,
        parameters: { ...change.claim },
      };
    case "finish-kill":
      return {
        from: ["killing"],
        set: `state = 'killed', manifest_head = NULL, frozen_on = NULL, metadata = '{}', variables = '{}', ${noClaim}`,
      };
    case "set-end":
      return {
        from: ["running"],
        set: "end_at_ms = :endAtMs",
        parameters: { endAtMs: change.endAtMs },
      };
    case "take-over":
      return { from: transitional, set: withClaim, parameters: { ...change.claim } };
    case "forget-frozen":
      return { from: ["paused"], set: "frozen_on = NULL" };
  }
}

function claimPause(claim: Claim, goesOn: 0 | 1): Step {
  const set = `state = 'pausing', goes_on = :goesOn, ${withClaim}`;
  return { from: ["running"], set, parameters: { ...claim, goesOn } };
}

function ended(from: readonly SandboxState[], set: string, reason: string): Step {
  return { from, set: `reason = :reason, ${set}`, parameters: { reason } };
}

/** The conditional write and what belongs to it, in the caller's transaction. The row count is the answer. */
export function applyChange(statements: Statements, request: ChangeRequest, nowMs: number): ChangeOutcome {
  const { on, change, effects = [] } = request;
  const { from, set, and = "TRUE", parameters = {} } = stepOf(change);
  const states = from.map((state) => `'${state}'`).join(", ");
  const written = statements.run(
    `UPDATE sandboxes SET revision = revision + 1, changed_at_ms = :nowMs, ${set}
      WHERE sandbox_id = :sandboxId AND revision = :revision AND state IN (${states}) AND ${and}`,
    { ...parameters, sandboxId: on.sandboxId, revision: on.revision, nowMs },
  );
  if (written === 0) return whyNot(statements, request);
  follow(statements, on.sandboxId, change, nowMs);
  const record = sandboxById(statements, on.sandboxId);
  if (record === undefined) throw new SpaceError("internal/bug", { where: "changed sandbox" });
  return { kind: "won", record, effects: writeEffects(statements, effects) };
}

function whyNot(statements: Statements, { on, change }: ChangeRequest): ChangeOutcome {
  if (change.kind !== "claim-resume") return { kind: "stale" };
  const row = statements.get(
    `SELECT t.sandbox_limit FROM sandboxes JOIN tenants t USING (tenant_id) WHERE sandbox_id = :sandboxId
      AND revision = :revision AND state IN ('paused', 'lost') AND manifest_head IS NOT NULL AND NOT ${withinLimit}`,
    { sandboxId: on.sandboxId, revision: on.revision },
  );
  return row === undefined ? { kind: "stale" } : { kind: "limit", limit: integer(row, "sandbox_limit") };
}

/** The rows that change with the sandbox's own. */
function follow(statements: Statements, sandboxId: SandboxId, change: SandboxChange, nowMs: number): void {
  switch (change.kind) {
    case "publish":
      return publish(statements, sandboxId, change.certificate);
    case "commit-pause":
      endExecution(statements, sandboxId, nowMs);
      return insertManifest(statements, sandboxId, change.manifest, "generation");
    case "commit-move":
      endExecution(statements, sandboxId, nowMs);
      insertManifest(statements, sandboxId, change.manifest, "generation - 1");
      return insertExecution(statements, change.identity);
    case "keep-snapshot":
      return insertKept(statements, change.kept);
    case "claim-pause":
    case "claim-snapshot":
      return insertSegments(statements, sandboxId, change.sealed);
    case "claim-resume":
      insertSegments(statements, sandboxId, change.sealed);
      return insertExecution(statements, change.identity);
    case "fail":
      statements.run("DELETE FROM idempotency_keys WHERE sandbox_id = :sandboxId", { sandboxId });
      return endExecution(statements, sandboxId, nowMs);
    case "finish-kill":
      statements.run("DELETE FROM manifests WHERE sandbox_id = :sandboxId", { sandboxId });
      statements.run("DELETE FROM sealed_segments WHERE sandbox_id = :sandboxId", { sandboxId });
      return endExecution(statements, sandboxId, nowMs);
    case "abandon-resume":
    case "lose":
      return endExecution(statements, sandboxId, nowMs);
    case "take-over":
      return nextAttempt(statements, sandboxId);
    case "abort-pause":
    case "claim-kill":
    case "set-end":
    case "forget-frozen":
      return;
  }
}

export function insertExecution(statements: Statements, identity: ExecutionIdentity): void {
  const { sandboxId, generation, placement, activation } = identity;
  statements.run(
    `INSERT INTO executions (sandbox_id, generation, worker_id, substrate, pod_uid, activation_id, attempt)
      VALUES (:sandboxId, :generation, :workerId, :substrate, :podUid, :activationId, :attempt)`,
    {
      sandboxId,
      generation,
      workerId: placement.workerId,
      substrate: placement.substrate,
      podUid: placement.podUid ?? null,
      activationId: activation.id,
      attempt: activation.attempt,
    },
  );
}

function endExecution(statements: Statements, sandboxId: string, nowMs: number): void {
  statements.run(
    "UPDATE executions SET ended_at_ms = :nowMs WHERE sandbox_id = :sandboxId AND ended_at_ms IS NULL",
    {
      sandboxId,
      nowMs,
    },
  );
}

/** of what is being started; what was published keeps its identity, whoever drives its sandbox. */
function nextAttempt(statements: Statements, sandboxId: SandboxId): void {
  statements.run(
    `UPDATE executions SET attempt = attempt + 1 WHERE sandbox_id = :sandboxId AND ended_at_ms IS NULL
      AND EXISTS (SELECT 1 FROM sandboxes WHERE sandbox_id = :sandboxId AND state IN ('creating', 'resuming'))`,
    { sandboxId },
  );
}

function publish(statements: Statements, sandboxId: string, certificate: PublishedCertificate): void {
  const { token, digest, previous, publicKey } = certificate;
  statements.run(
    `UPDATE executions SET public_key = :publicKey
      WHERE sandbox_id = :sandboxId AND public_key IS NULL AND ended_at_ms IS NULL`,
    { sandboxId, publicKey },
  );
  statements.run(
    `INSERT INTO certificates (digest, sandbox_id, generation, previous, token)
      SELECT :digest, sandbox_id, generation, :previous, :token FROM sandboxes WHERE sandbox_id = :sandboxId`,
    { digest, sandboxId, previous, token },
  );
}

function insertManifest(
  statements: Statements,
  sandboxId: string,
  manifest: CommittedManifest,
  generation: "generation" | "generation - 1",
): void {
  const { digest, previous, memory, sizeBytes, countersigned } = manifest;
  statements.run(
    `INSERT INTO manifests (digest, sandbox_id, generation, previous, memory, size_bytes, countersigned)
      SELECT :digest, sandbox_id, ${generation}, :previous, :memory, :sizeBytes, :countersigned
      FROM sandboxes WHERE sandbox_id = :sandboxId`,
    { digest, sandboxId, previous, memory, sizeBytes, countersigned },
  );
}
