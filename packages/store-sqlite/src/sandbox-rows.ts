// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Claim,
  type ExecutionRecord,
  freezeIdentity,
  type Generation,
  type Placement,
  parseActivationId,
  parseDigest,
  parseGeneration,
  parseSandboxId,
  parseSnapshotId,
  parseSubstrateName,
  parseTenantId,
  parseWorkerId,
  type SandboxId,
  type SandboxOrigin,
  type SandboxRecord,
  type SandboxState,
  type SnapshotHead,
} from "@space/model";
import type { Parameters, Statements } from "./database.ts";
import { integer, nullableText, oneOf, type Row, real, strings, text } from "./row.ts";

const states: readonly SandboxState[] = [
  "creating",
  "running",
  "pausing",
  "paused",
  "resuming",
  "killing",
  "killed",
  "failed",
  "lost",
];

const sandboxRow =
  "SELECT s.*, CAST(s.generation AS TEXT) AS generation_text, CAST(s.lost_generation AS TEXT) AS lost_generation_text FROM sandboxes s";
const executionRow = "SELECT * FROM executions WHERE sandbox_id = :sandboxId AND generation = :generation";
const manifestRow =
  "SELECT digest, memory, size_bytes FROM manifests WHERE sandbox_id = :sandboxId AND digest = :digest";

/**
 * The sandboxes `s` that the tail of a query selects, each with its newest execution and snapshot. Three look-ups by
 * key each: here a join takes five times as long. Generations are read as text: they are 64 bits wide.
 */
export function sandboxesWhere(
  statements: Statements,
  tail: string,
  parameters: Parameters,
): readonly SandboxRecord[] {
  return statements.all(`${sandboxRow} ${tail}`, parameters).map((row) => sandboxOf(statements, row));
}

export function sandboxById(statements: Statements, sandboxId: SandboxId): SandboxRecord | undefined {
  const row = statements.get(`${sandboxRow} WHERE s.sandbox_id = :sandboxId`, { sandboxId });
  return row === undefined ? undefined : sandboxOf(statements, row);
}

/** Throws when the row is not what was written. */
function sandboxOf(statements: Statements, row: Row): SandboxRecord {
  const sandboxId = parseSandboxId(text(row, "sandbox_id"));
  const generation = parseGeneration(text(row, "generation_text"));
  const certificateHead = nullableText(row, "certificate_head");
  const lostGeneration = nullableText(row, "lost_generation_text");
  return {
    sandboxId,
    tenantId: parseTenantId(text(row, "tenant_id")),
    template: text(row, "template"),
    state: oneOf(row, "state", states),
    revision: integer(row, "revision"),
    generation,
    execution: executionOf(statements, sandboxId, generation),
    goesOn: integer(row, "goes_on") === 1,
    origin: originOf(row),
    claim: claimOf(row),
    createdAtMs: integer(row, "created_at_ms"),
    startedAtMs: integer(row, "started_at_ms"),
    endAtMs: integer(row, "end_at_ms"),
    onTimeout: oneOf(row, "on_timeout", ["kill", "pause"]),
    keepMemory: integer(row, "keep_memory") === 1,
    autoResume: integer(row, "auto_resume") === 1,
    autoRecover: integer(row, "auto_recover") === 1,
    timeoutMs: integer(row, "timeout_ms"),
    metadata: strings(row, "metadata"),
    variables: strings(row, "variables"),
    limits: {
      memoryBytes: integer(row, "memory_bytes"),
      cpus: real(row, "cpus"),
      processes: integer(row, "processes"),
      diskBytes: integer(row, "disk_bytes"),
    },
    certificateHead: certificateHead === null ? null : parseDigest(certificateHead),
    snapshot: snapshotOf(statements, row),
    lostGeneration: lostGeneration === null ? null : parseGeneration(lostGeneration),
    reason: nullableText(row, "reason"),
  };
}

function executionOf(statements: Statements, sandboxId: SandboxId, generation: Generation): ExecutionRecord {
  const row = statements.get(executionRow, { sandboxId, generation }) ?? {};
  const publicKey = nullableText(row, "public_key");
  const podUid = nullableText(row, "pod_uid");
  const base = {
    workerId: parseWorkerId(text(row, "worker_id")),
    substrate: parseSubstrateName(text(row, "substrate")),
  };
  const placement: Placement = podUid === null ? base : { ...base, podUid };
  return {
    identity: freezeIdentity({
      sandboxId,
      generation,
      placement,
      activation: { id: parseActivationId(text(row, "activation_id")), attempt: integer(row, "attempt") },
    }),
    state: row["ended_at_ms"] !== null ? "ended" : publicKey === null ? "starting" : "active",
    publicKey,
  };
}

function originOf(row: Row): SandboxOrigin | null {
  if (row["origin_kind"] === null) return null;
  return {
    kind: oneOf(row, "origin_kind", ["fork", "template"]),
    snapshotId: parseSnapshotId(text(row, "origin_snapshot")),
    parentManifest: parseDigest(text(row, "origin_manifest")),
  };
}

function claimOf(row: Row): Claim | null {
  const owner = nullableText(row, "claim_owner");
  return owner === null ? null : { owner, untilMs: integer(row, "claim_until_ms") };
}

function snapshotOf(statements: Statements, row: Row): SnapshotHead | null {
  const digest = nullableText(row, "manifest_head");
  if (digest === null) return null;
  const manifest = statements.get(manifestRow, { sandboxId: text(row, "sandbox_id"), digest }) ?? {};
  const frozenOn = nullableText(row, "frozen_on");
  return {
    digest: parseDigest(digest),
    memory: oneOf(manifest, "memory", ["none", "frozen-on-worker", "in-snapshot"]),
    sizeBytes: integer(manifest, "size_bytes"),
    frozenOn: frozenOn === null ? null : parseWorkerId(frozenOn),
  };
}
