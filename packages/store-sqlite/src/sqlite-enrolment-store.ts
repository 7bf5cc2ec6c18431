// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type EnrolmentStore, parseWorkerId, type StoreSuccession, type WorkerId } from "@space/model";
import type { Database } from "./database.ts";
import { text } from "./row.ts";

/** {@link EnrolmentStore} over SQLite. */
export class SqliteEnrolmentStore implements EnrolmentStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  succeed(workerId: WorkerId, { held, next }: StoreSuccession, atMs: number): Promise<boolean> {
    return this.#database.write((statements) => {
      const row = { workerId, held, next, atMs };
      // The store of the last connection, or the last step again.
      const followed = statements.run(
        `UPDATE enrolments SET token = :next, previous = :held, connected_at_ms = :atMs
          WHERE worker_id = :workerId AND (token = :held OR (token = :next AND previous IS :held))`,
        row,
      );
      if (followed === 1) return true;
      if (held !== null) return false;
      const begun = statements.run(
        `INSERT INTO enrolments (worker_id, token, previous, connected_at_ms)
          VALUES (:workerId, :next, NULL, :atMs) ON CONFLICT (worker_id) DO NOTHING`,
        { workerId, next, atMs },
      );
      return begun === 1;
    });
  }

  async enrolled(): Promise<readonly WorkerId[]> {
    const rows = this.#database.all("SELECT worker_id FROM enrolments ORDER BY worker_id");
    return rows.map((row) => parseWorkerId(text(row, "worker_id")));
  }
}
