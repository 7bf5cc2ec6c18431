// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type BeginOutcome, type NewSandbox, parseDigest, parseSandboxId, SpaceError } from "@space/model";
import type { Statements } from "./database.ts";
import { integer, text } from "./row.ts";
import { insertExecution } from "./sandbox-changes.ts";
import { sandboxById } from "./sandbox-rows.ts";

/** The new row, if the tenant's limit allows one more at this very moment. */
const insertSandbox = `
  INSERT INTO sandboxes (sandbox_id, tenant_id, template, state, revision, generation, claim_owner, claim_until_ms,
    created_at_ms, started_at_ms, end_at_ms, changed_at_ms, on_timeout, keep_memory, auto_resume, auto_recover, timeout_ms,
    metadata, variables, memory_bytes, cpus, processes, disk_bytes, origin_kind, origin_snapshot, origin_manifest)
  SELECT :sandboxId, :tenantId, :template, 'creating', 1, 1, :owner, :untilMs,
    :createdAtMs, :createdAtMs, :endAtMs, :createdAtMs, :onTimeout, :keepMemory, :autoResume, :autoRecover, :timeoutMs,
    :metadata, :variables, :memoryBytes, :cpus, :processes, :diskBytes,
    :originKind, :originSnapshot, :originManifest
  FROM tenants WHERE tenant_id = :tenantId AND live < sandbox_limit`;

/** Runs in the caller's transaction. */
export function beginSandbox(statements: Statements, sandbox: NewSandbox): BeginOutcome {
  const repeated = findRepeated(statements, sandbox);
  if (repeated !== undefined) return repeated;
  if (sandbox.origin !== undefined && !mayBeginWith(statements, sandbox)) return { kind: "origin-gone" };
  if (statements.run(insertSandbox, columnsOf(sandbox)) === 0) {
    return { kind: "limit", limit: limitOf(statements, sandbox) };
  }
  insertExecution(statements, sandbox.identity);
  const { sandboxId } = sandbox.identity;
  if (sandbox.idempotency !== undefined) {
    statements.run(
      `INSERT INTO idempotency_keys (tenant_id, key, fingerprint, sandbox_id)
        VALUES (:tenantId, :key, :fingerprint, :sandboxId)`,
      { tenantId: sandbox.tenantId, sandboxId, ...sandbox.idempotency },
    );
  }
  const record = sandboxById(statements, sandboxId);
  if (record === undefined) throw new SpaceError("internal/bug", { where: "new sandbox" });
  return { kind: "begun", record };
}

function findRepeated(statements: Statements, sandbox: NewSandbox): BeginOutcome | undefined {
  if (sandbox.idempotency === undefined) return undefined;
  const row = statements.get(
    "SELECT sandbox_id, fingerprint FROM idempotency_keys WHERE tenant_id = :tenantId AND key = :key",
    { tenantId: sandbox.tenantId, key: sandbox.idempotency.key },
  );
  if (row === undefined) return undefined;
  return {
    kind: "repeated",
    sandboxId: parseSandboxId(text(row, "sandbox_id")),
    fingerprint: parseDigest(text(row, "fingerprint")),
  };
}

/** From here on it is kept until the new sandbox runs, or is no more. */
function mayBeginWith(statements: Statements, { tenantId, origin }: NewSandbox): boolean {
  const row = statements.get(
    `SELECT 1 FROM kept_snapshots WHERE snapshot_id = :snapshotId AND tenant_id = :tenantId AND digest = :digest
      AND held_until_ms IS NOT 0`,
    { snapshotId: origin?.snapshotId ?? "", tenantId, digest: origin?.parentManifest ?? "" },
  );
  return row !== undefined;
}

function limitOf(statements: Statements, { tenantId }: NewSandbox): number {
  const row = statements.get("SELECT sandbox_limit FROM tenants WHERE tenant_id = :tenantId", { tenantId });
  if (row === undefined) throw new SpaceError("internal/bug", { where: "tenant of a new sandbox" });
  return integer(row, "sandbox_limit");
}

function columnsOf(sandbox: NewSandbox): Record<string, string | number | null> {
  const { limits, claim, origin } = sandbox;
  return {
    sandboxId: sandbox.identity.sandboxId,
    tenantId: sandbox.tenantId,
    template: sandbox.template,
    owner: claim.owner,
    untilMs: claim.untilMs,
    createdAtMs: sandbox.createdAtMs,
    endAtMs: sandbox.endAtMs,
    onTimeout: sandbox.onTimeout,
    keepMemory: sandbox.keepMemory ? 1 : 0,
    autoResume: sandbox.autoResume ? 1 : 0,
    autoRecover: sandbox.autoRecover ? 1 : 0,
    timeoutMs: sandbox.timeoutMs,
    metadata: JSON.stringify(sandbox.metadata),
    variables: JSON.stringify(sandbox.variables),
    memoryBytes: limits.memoryBytes,
    cpus: limits.cpus,
    processes: limits.processes,
    diskBytes: limits.diskBytes,
    originKind: origin?.kind ?? null,
    originSnapshot: origin?.snapshotId ?? null,
    originManifest: origin?.parentManifest ?? null,
  };
}
