// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Digest,
  type KeptSnapshot,
  type KeptSnapshotStore,
  type ListKeptSnapshots,
  parseDigest,
  parseSandboxId,
  parseSnapshotId,
  parseTenantId,
  type SnapshotId,
  type TenantId,
} from "@space/model";
import type { Database, Statements } from "./database.ts";
import { integer, nullableInteger, nullableText, oneOf, type Row, real, strings, text } from "./row.ts";

const isBegunWith =
  "EXISTS (SELECT 1 FROM sandboxes s WHERE s.origin_snapshot = k.snapshot_id AND s.state = 'creating')";

/** In the transaction of the change that it comes with. What had its name is released. */
export function insertKept(statements: Statements, kept: KeptSnapshot): void {
  const { limits, tenantId, name } = kept;
  if (name !== null) {
    statements.run(
      "UPDATE kept_snapshots SET name = NULL, held_until_ms = 0 WHERE tenant_id = :tenantId AND name = :name",
      { tenantId, name },
    );
  }
  statements.run(
    `INSERT INTO kept_snapshots (snapshot_id, tenant_id, sandbox_id, digest, countersigned, execution_public_key, memory,
        size_bytes, objects, template, memory_bytes, cpus, processes, disk_bytes, variables, name, created_at_ms, held_until_ms)
      VALUES (:snapshotId, :tenantId, :sandboxId, :digest, :countersigned, :executionPublicKey, :memory,
        :sizeBytes, :objects, :template, :memoryBytes, :cpus, :processes, :diskBytes, :variables, :name, :createdAtMs, :heldUntilMs)`,
    {
      snapshotId: kept.snapshotId,
      tenantId,
      sandboxId: kept.sandboxId,
      digest: kept.digest,
      countersigned: kept.countersigned,
      executionPublicKey: kept.executionPublicKey,
      memory: kept.memory,
      sizeBytes: kept.sizeBytes,
      objects: JSON.stringify(kept.objects),
      template: kept.template,
      memoryBytes: limits.memoryBytes,
      cpus: limits.cpus,
      processes: limits.processes,
      diskBytes: limits.diskBytes,
      variables: JSON.stringify(kept.variables),
      name,
      createdAtMs: kept.createdAtMs,
      heldUntilMs: kept.heldUntilMs,
    },
  );
}

/** See {@link KeptSnapshotStore}. */
export class SqliteKeptSnapshots implements KeptSnapshotStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async keptSnapshot(tenantId: TenantId, snapshotId: SnapshotId): Promise<KeptSnapshot | undefined> {
    const row = this.#database.get(
      "SELECT * FROM kept_snapshots WHERE snapshot_id = :snapshotId AND tenant_id = :tenantId",
      { snapshotId, tenantId },
    );
    return row && keptOf(row);
  }

  async listKept(
    tenantId: TenantId,
    { sandboxId, name, limit, after }: ListKeptSnapshots,
  ): Promise<readonly KeptSnapshot[]> {
    const rows = this.#database.all(
      `SELECT * FROM kept_snapshots WHERE tenant_id = :tenantId AND held_until_ms IS NULL
        AND (:sandboxId IS NULL OR sandbox_id = :sandboxId) AND (:name IS NULL OR name = :name)
        AND (:afterId IS NULL OR (created_at_ms, snapshot_id) < (:afterMs, :afterId))
        ORDER BY created_at_ms DESC, snapshot_id DESC LIMIT :limit`,
      {
        tenantId,
        sandboxId: sandboxId ?? null,
        name: name ?? null,
        afterMs: after?.createdAtMs ?? null,
        afterId: after?.snapshotId ?? null,
        limit,
      },
    );
    return rows.map(keptOf);
  }

  releaseKept(tenantId: TenantId, snapshotId: SnapshotId): Promise<boolean> {
    return this.#database.write((statements) => {
      const written = statements.run(
        `UPDATE kept_snapshots SET name = NULL, held_until_ms = 0
          WHERE snapshot_id = :snapshotId AND tenant_id = :tenantId AND held_until_ms IS NOT 0`,
        { snapshotId, tenantId },
      );
      return written > 0;
    });
  }

  async neededSnapshots(
    tenantId: TenantId,
    { after, limit }: { readonly after: SnapshotId | null; readonly limit: number },
  ): Promise<readonly Pick<KeptSnapshot, "snapshotId" | "digest" | "countersigned" | "objects">[]> {
    const rows = this.#database.all(
      `SELECT snapshot_id, digest, countersigned, objects FROM kept_snapshots
        WHERE tenant_id = :tenantId AND snapshot_id > :after ORDER BY snapshot_id LIMIT :limit`,
      { tenantId, after: after ?? "", limit },
    );
    return rows.map((row) => ({
      snapshotId: parseSnapshotId(text(row, "snapshot_id")),
      digest: parseDigest(text(row, "digest")),
      countersigned: text(row, "countersigned"),
      objects: objectsOf(row),
    }));
  }

  purgeKept(nowMs: number, limit: number): Promise<number> {
    return this.#database.write((statements) =>
      statements.run(
        `DELETE FROM kept_snapshots WHERE snapshot_id IN (
          SELECT k.snapshot_id FROM kept_snapshots k WHERE k.held_until_ms <= :nowMs AND NOT ${isBegunWith} LIMIT :limit)`,
        { nowMs, limit },
      ),
    );
  }
}

function keptOf(row: Row): KeptSnapshot {
  return {
    snapshotId: parseSnapshotId(text(row, "snapshot_id")),
    tenantId: parseTenantId(text(row, "tenant_id")),
    sandboxId: parseSandboxId(text(row, "sandbox_id")),
    digest: parseDigest(text(row, "digest")),
    countersigned: text(row, "countersigned"),
    executionPublicKey: text(row, "execution_public_key"),
    memory: oneOf(row, "memory", ["none", "in-snapshot"]),
    sizeBytes: integer(row, "size_bytes"),
    objects: objectsOf(row),
    template: text(row, "template"),
    limits: {
      memoryBytes: integer(row, "memory_bytes"),
      cpus: real(row, "cpus"),
      processes: integer(row, "processes"),
      diskBytes: integer(row, "disk_bytes"),
    },
    variables: strings(row, "variables"),
    name: nullableText(row, "name"),
    createdAtMs: integer(row, "created_at_ms"),
    heldUntilMs: nullableInteger(row, "held_until_ms"),
  };
}

function objectsOf(row: Row): readonly Digest[] {
  const value: unknown = JSON.parse(text(row, "objects"));
  return Array.isArray(value) ? value.map(parseDigest) : [];
}
