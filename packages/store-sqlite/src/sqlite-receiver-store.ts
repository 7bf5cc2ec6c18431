// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { parseWorkerId, type ReceiverRecord, type ReceiverStore, type WorkerId } from "@space/model";
import type { Database, Statements } from "./database.ts";
import { integer, type Row } from "./row.ts";

const endsEarlier =
  "lease_granted_at_ms IS NULL OR lease_granted_at_ms + lease_term_ms < :grantedAtMs + :termMs";

/** {@link ReceiverStore} over SQLite. */
export class SqliteReceiverStore implements ReceiverStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async receivers(): Promise<readonly ReceiverRecord[]> {
    return this.#database.all("SELECT * FROM receivers ORDER BY worker_id").map(rowToReceiver);
  }

  acknowledgeOrder(workerId: WorkerId, position: number): Promise<void> {
    return this.#database.write((statements) => {
      // By position, so that an order that was replaced meanwhile stays.
      statements.run("DELETE FROM outbox WHERE id = :position AND worker_id = :workerId", {
        position,
        workerId,
      });
      raise(statements, "position", workerId, position);
    });
  }

  acknowledgeBundle(workerId: WorkerId, version: number): Promise<void> {
    return this.#database.write((statements) => raise(statements, "bundle_version", workerId, version));
  }

  recordLease(
    workerId: WorkerId,
    lease: NonNullable<ReceiverRecord["lease"]>,
  ): Promise<NonNullable<ReceiverRecord["lease"]> | undefined> {
    return this.#database.write((statements) => {
      const row = statements.get(
        `INSERT INTO receivers (worker_id, lease_granted_at_ms, lease_term_ms)
          SELECT :workerId, :grantedAtMs, :termMs
          WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE worker_id = :workerId AND subject GLOB 'retire *')
          ON CONFLICT (worker_id) DO UPDATE SET
            lease_granted_at_ms = iif(${endsEarlier}, :grantedAtMs, lease_granted_at_ms + 1),
            lease_term_ms = iif(${endsEarlier}, :termMs, lease_term_ms)
          RETURNING *`,
        { workerId, ...lease },
      );
      return row === undefined ? undefined : (rowToReceiver(row).lease ?? undefined);
    });
  }
}

function raise(
  statements: Statements,
  column: "position" | "bundle_version",
  workerId: WorkerId,
  value: number,
): void {
  statements.run(
    `INSERT INTO receivers (worker_id, ${column}) VALUES (:workerId, :value)
      ON CONFLICT (worker_id) DO UPDATE SET ${column} = max(${column}, :value)`,
    { workerId, value },
  );
}

function rowToReceiver(row: Row): ReceiverRecord {
  return {
    workerId: parseWorkerId(row["worker_id"]),
    position: integer(row, "position"),
    bundleVersion: integer(row, "bundle_version"),
    lease:
      row["lease_term_ms"] === null
        ? null
        : { grantedAtMs: integer(row, "lease_granted_at_ms"), termMs: integer(row, "lease_term_ms") },
  };
}
