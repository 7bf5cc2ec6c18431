// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  SigningKeyChange,
  SigningKeyRecord,
  SigningKeyStep,
  SigningKeyStore,
  StoredKeyBundle,
} from "@space/model";
import type { Database, Statements } from "./database.ts";
import { integer, nullableInteger, oneOf, type Row, text } from "./row.ts";

const states = ["announced", "signing", "retiring", "removed", "revoked"] as const;

/** {@link SigningKeyStore} over SQLite. */
export class SqliteSigningKeyStore implements SigningKeyStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async all(): Promise<readonly SigningKeyRecord[]> {
    return this.#database.all("SELECT * FROM signing_keys ORDER BY announced_in, kid").map(toRecord);
  }

  async bundles(): Promise<readonly StoredKeyBundle[]> {
    return this.#database
      .all("SELECT version, token FROM key_bundles ORDER BY version")
      .map((row) => ({ version: integer(row, "version"), token: text(row, "token") }));
  }

  async change(step: SigningKeyStep): Promise<boolean> {
    try {
      return await this.#database.write((statements) => {
        if (newestVersion(statements) !== step.onVersion) return false;
        if (step.bundle !== null) addBundle(statements, step.bundle);
        for (const change of step.changes) {
          if (!apply(statements, change, step)) throw new LostStep();
        }
        return true;
      });
    } catch (error) {
      if (error instanceof LostStep) return false; // and nothing of the step was written
      throw error;
    }
  }
}

/** Another step won. Thrown inside a write, so that all of this one is undone. */
class LostStep extends Error {}

function newestVersion(statements: Statements): number {
  return integer(statements.get("SELECT coalesce(max(version), 0) AS v FROM key_bundles") ?? {}, "v");
}

function addBundle(statements: Statements, { version, token }: StoredKeyBundle): void {
  statements.run("INSERT INTO key_bundles (version, token) VALUES (:version, :token)", { version, token });
}

/** Whether the key was in a state that allows it. */
function apply(statements: Statements, change: SigningKeyChange, step: SigningKeyStep): boolean {
  const { kid } = change;
  const { atMs } = step;
  const version = step.bundle?.version ?? step.onVersion;
  switch (change.kind) {
    case "announce": {
      const { publicKey } = change;
      return (
        statements.run(
          `INSERT INTO signing_keys (kid, public_key, state, announced_in, announced_at_ms)
            VALUES (:kid, :publicKey, 'announced', :version, :atMs)`,
          { kid, publicKey, version, atMs },
        ) === 1
      );
    }
    case "promote":
      statements.run(
        "UPDATE signing_keys SET state = 'retiring', retiring_since_ms = :atMs WHERE state = 'signing'",
        { atMs },
      );
      return (
        statements.run(
          `UPDATE signing_keys SET state = 'signing', signing_since_ms = :atMs
            WHERE kid = :kid AND state = 'announced'`,
          { kid, atMs },
        ) === 1
      );
    case "end":
      return (
        statements.run(
          `UPDATE signing_keys SET state = :as, ended_at_ms = :atMs, ended_in = :version
            WHERE kid = :kid AND (state = 'retiring' OR (state = 'announced' AND :as = 'revoked'))`,
          { kid, as: change.as, atMs, version },
        ) === 1
      );
    case "ask-revocation":
      return (
        statements.run(
          `UPDATE signing_keys SET revoke_asked_at_ms = coalesce(revoke_asked_at_ms, :atMs)
            WHERE kid = :kid AND state IN ('announced', 'signing', 'retiring')`,
          { kid, atMs },
        ) === 1
      );
  }
}

function toRecord(row: Row): SigningKeyRecord {
  return {
    kid: text(row, "kid"),
    publicKey: text(row, "public_key"),
    state: oneOf(row, "state", states),
    announcedIn: integer(row, "announced_in"),
    announcedAtMs: integer(row, "announced_at_ms"),
    signingSinceMs: nullableInteger(row, "signing_since_ms"),
    retiringSinceMs: nullableInteger(row, "retiring_since_ms"),
    endedAtMs: nullableInteger(row, "ended_at_ms"),
    endedIn: nullableInteger(row, "ended_in"),
    revokeAskedAtMs: nullableInteger(row, "revoke_asked_at_ms"),
  };
}
