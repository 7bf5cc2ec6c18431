// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  identityToJson,
  members,
  type PendingQuery,
  type PendingSideEffect,
  parseDigest,
  parseIdentity,
  parseSandboxId,
  parseWorkerId,
  type SideEffect,
  SpaceError,
} from "@space/model";
import type { Statements } from "./database.ts";
import { integer, type Row, text } from "./row.ts";

/** A newer order about the same subject replaces the older one, under a new id. */
const insertEffect = `
  INSERT OR REPLACE INTO outbox (worker_id, sandbox_id, subject, effect)
  VALUES (:workerId, :sandboxId, :subject, :effect) RETURNING id`;

/** Writes side effects with the transaction that caused them. */
export function writeEffects(
  statements: Statements,
  effects: readonly SideEffect[],
): readonly PendingSideEffect[] {
  return effects.map((effect) => {
    const row = statements.get(insertEffect, {
      ...addressOf(effect),
      effect: JSON.stringify(effectToJson(effect)),
    });
    return { id: integer(row ?? {}, "id"), effect, attempts: 0, notBeforeMs: 0 };
  });
}

/** In the order in which they were written. */
export function pendingEffects(statements: Statements, query: PendingQuery): readonly PendingSideEffect[] {
  const { workerId = null, sandboxId = null, dueMs = null, afterId = 0, limit } = query;
  const rows = statements.all(
    `SELECT id, effect, attempts, not_before_ms FROM outbox WHERE (:workerId IS NULL OR worker_id = :workerId)
      AND (:sandboxId IS NULL OR sandbox_id = :sandboxId) AND (:dueMs IS NULL OR not_before_ms <= :dueMs) AND id > :afterId
      ORDER BY id LIMIT :limit`,
    { workerId, sandboxId, dueMs, afterId, limit },
  );
  return rows.map((row) => ({
    id: integer(row, "id"),
    effect: effectOf(row),
    attempts: integer(row, "attempts"),
    notBeforeMs: integer(row, "not_before_ms"),
  }));
}

export function postponeEffect(statements: Statements, id: number, notBeforeMs: number): void {
  statements.run("UPDATE outbox SET attempts = attempts + 1, not_before_ms = :notBeforeMs WHERE id = :id", {
    id,
    notBeforeMs,
  });
}

function addressOf(effect: SideEffect): { workerId: string; sandboxId: string; subject: string } {
  switch (effect.kind) {
    case "retire": {
      const { placement, sandboxId, generation, activation } = effect.identity;
      const subject = `retire ${generation} ${activation.attempt}`;
      return { workerId: placement.workerId, sandboxId, subject };
    }
    case "discard":
      return {
        workerId: effect.workerId,
        sandboxId: effect.sandboxId,
        subject: `discard ${effect.manifest}`,
      };
  }
}

function effectToJson(effect: SideEffect): unknown {
  return effect.kind === "retire" ? { ...effect, identity: identityToJson(effect.identity) } : effect;
}

function effectOf(row: Row): SideEffect {
  const value: unknown = JSON.parse(text(row, "effect"));
  const { kind } = members(
    value,
    "effect",
    ["kind"],
    ["identity", "keepFrozen", "sandboxId", "workerId", "manifest"],
  );
  if (kind === "retire") {
    const { identity, keepFrozen } = members(value, "effect", ["kind", "identity", "keepFrozen"]);
    return {
      kind,
      identity: parseIdentity(identity),
      keepFrozen: keepFrozen === null ? null : parseDigest(keepFrozen),
    };
  }
  if (kind !== "discard") throw new SpaceError("store/failed", { step: "column effect" });
  const { sandboxId, workerId, manifest } = members(value, "effect", [
    "kind",
    "sandboxId",
    "workerId",
    "manifest",
  ]);
  return {
    kind,
    sandboxId: parseSandboxId(sandboxId),
    workerId: parseWorkerId(workerId),
    manifest: parseDigest(manifest),
  };
}
