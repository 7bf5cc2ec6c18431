// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SQLInputValue } from "node:sqlite";
import {
  type ListSandboxes,
  parseWorkerId,
  type SandboxRecord,
  type TenantId,
  type WorkerId,
} from "@space/model";
import type { Statements } from "./database.ts";
import { integer, text } from "./row.ts";
import { sandboxesWhere } from "./sandbox-rows.ts";

/** What a caller sees as paused: everything that a connect brings back with its newest state. */
const shownAs: Readonly<Record<ListSandboxes["states"][number], string>> = {
  running: "(s.state = 'running' OR (s.state = 'pausing' AND s.goes_on = 1))",
  paused: "(s.state IN ('paused', 'resuming') OR (s.state = 'pausing' AND s.goes_on = 0))",
  lost: "s.state = 'lost'",
};

/** One order over all states, by start time and then id, applied before the page is cut. */
export function listSandboxes(
  statements: Statements,
  tenantId: TenantId,
  query: ListSandboxes,
): readonly SandboxRecord[] {
  const parameters: Record<string, SQLInputValue> = { tenantId, limit: query.limit };
  const conditions = [
    "s.tenant_id = :tenantId",
    // Says to the planner what the partial index holds.
    "s.state IN ('running', 'pausing', 'paused', 'resuming', 'lost')",
    `(${query.states.map((state) => shownAs[state]).join(" OR ") || "FALSE"})`,
  ];
  const where = (condition: string, values: Record<string, SQLInputValue>): void => {
    conditions.push(condition);
    Object.assign(parameters, values);
  };
  if (query.template !== undefined) where("s.template = :template", { template: query.template });
  if (query.startedAfterMs !== undefined) {
    where("s.started_at_ms > :startedAfterMs", { startedAfterMs: query.startedAfterMs });
  }
  for (const [index, [key, value]] of Object.entries(query.metadata).entries()) {
    where(
      `EXISTS (SELECT 1 FROM json_each(s.metadata) WHERE key = :key${index} AND value = :value${index})`,
      { [`key${index}`]: key, [`value${index}`]: value },
    );
  }
  const order = query.order === "asc" ? "ASC" : "DESC";
  if (query.after !== undefined) {
    where(`(s.started_at_ms, s.sandbox_id) ${order === "ASC" ? ">" : "<"} (:afterMs, :afterId)`, {
      afterMs: query.after.startedAtMs,
      afterId: query.after.sandboxId,
    });
  }
  return sandboxesWhere(
    statements,
    `WHERE ${conditions.join(" AND ")}
      ORDER BY s.started_at_ms ${order}, s.sandbox_id ${order} LIMIT :limit`,
    parameters,
  );
}

/** The words of the partial index, so that the planner sees that it may be used. */
const needsSomebody = "s.state NOT IN ('paused', 'killed', 'failed')";
const dueBy = `${needsSomebody} AND coalesce(s.claim_until_ms, s.end_at_ms) <= :nowMs`;
const inDueOrder = "ORDER BY coalesce(s.claim_until_ms, s.end_at_ms) LIMIT :limit";

export function dueSandboxes(statements: Statements, nowMs: number, limit: number): readonly SandboxRecord[] {
  return sandboxesWhere(
    statements,
    `WHERE ${dueBy} AND (s.state = 'running'
      OR (s.state = 'lost' AND (s.on_timeout = 'kill' OR s.manifest_head IS NULL))) ${inDueOrder}`,
    { nowMs, limit },
  );
}

export function abandonedSandboxes(
  statements: Statements,
  nowMs: number,
  limit: number,
): readonly SandboxRecord[] {
  return sandboxesWhere(statements, `WHERE ${dueBy} AND s.claim_owner IS NOT NULL ${inDueOrder}`, {
    nowMs,
    limit,
  });
}

export function liveSandboxes(statements: Statements): readonly SandboxRecord[] {
  return sandboxesWhere(
    statements,
    `WHERE ${needsSomebody} UNION ALL SELECT s.*, CAST(s.generation AS TEXT), CAST(s.lost_generation AS TEXT) FROM sandboxes s
      WHERE s.frozen_on IS NOT NULL`,
    {},
  );
}

export function sandboxesOnWorker(statements: Statements, workerId: WorkerId): readonly SandboxRecord[] {
  return sandboxesWhere(
    statements,
    `WHERE s.sandbox_id IN (
      SELECT sandbox_id FROM executions WHERE worker_id = :workerId AND ended_at_ms IS NULL
      UNION SELECT sandbox_id FROM sandboxes WHERE frozen_on = :workerId)`,
    { workerId },
  );
}

/** Executions that have not ended, and frozen ones. */
export function workerLoad(statements: Statements): ReadonlyMap<WorkerId, number> {
  const rows = statements.all("SELECT worker_id, held FROM worker_load WHERE held > 0");
  return new Map(rows.map((row) => [parseWorkerId(text(row, "worker_id")), integer(row, "held")]));
}

export function recoverableSandboxes(
  statements: Statements,
  nowMs: number,
  limit: number,
): readonly SandboxRecord[] {
  return sandboxesWhere(
    statements,
    `WHERE s.state = 'lost' AND s.auto_recover = 1 AND s.manifest_head IS NOT NULL AND s.end_at_ms > :nowMs
      ORDER BY s.end_at_ms LIMIT :limit`,
    { nowMs, limit },
  );
}
