// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { isSpaceError } from "@space/model";
import { Database } from "./database.ts";
import { migrate } from "./migrations.ts";

function opened(context: TestContext): { database: Database; path: string } {
  const directory = mkdtempSync(join(tmpdir(), "database-"));
  const path = join(directory, "test.sqlite");
  const database = Database.open(path);
  context.after(() => {
    database.close();
    rmSync(directory, { recursive: true });
  });
  database.script("CREATE TABLE numbers (n INTEGER PRIMARY KEY) STRICT");
  return { database, path };
}

const all = (database: Database): unknown => database.all("SELECT n FROM numbers").map(({ n }) => n);

describe("a database", () => {
  test("writes asked for in one turn share a transaction; one that throws leaves no trace and harms none", async (context) => {
    const { database } = opened(context);
    const insert = (n: number) => database.write((s) => s.run("INSERT INTO numbers VALUES (:n)", { n }));
    const outcomes = await Promise.allSettled([
      insert(1),
      database.write((s) => {
        s.run("INSERT INTO numbers VALUES (2)");
        throw new RangeError("no");
      }),
      insert(1),
      insert(3),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "rejected", "fulfilled"],
    );
    assert.deepEqual(all(database), [1, 3]);
    const violated = outcomes[2];
    assert.ok(violated?.status === "rejected" && isSpaceError(violated.reason, "internal/bug"));
  });

  test("later writes see earlier ones of the same transaction", async (context) => {
    const { database } = opened(context);
    const count = (): Promise<unknown> =>
      database.write((s) => {
        s.run("INSERT INTO numbers SELECT coalesce(max(n), 0) + 1 FROM numbers");
        return s.get("SELECT max(n) AS n FROM numbers")?.["n"];
      });
    assert.deepEqual(await Promise.all([count(), count(), count()]), [1, 2, 3]);
  });

  test("a commit that fails rejects every write of it with store/failed, and the next one works", async (context) => {
    const { database } = opened(context);
    const spoiled = database.write((s) => s.run("INSERT INTO numbers VALUES (1)"));
    // Ends the shared transaction from within, so that its COMMIT has nothing to commit.
    const spoiler = database.write((s) => s.run("ROLLBACK"));
    for (const write of [spoiled, spoiler]) {
      await assert.rejects(write, (error) => isSpaceError(error, "store/failed"));
    }
    await database.write((s) => s.run("INSERT INTO numbers VALUES (7)"));
    assert.deepEqual(all(database), [7]);
  });

  test("close writes what waits, and refuses what comes later", async (context) => {
    const { database, path } = opened(context);
    const waiting = database.write((s) => s.run("INSERT INTO numbers VALUES (5)"));
    database.close();
    assert.equal(await waiting, 1);
    await assert.rejects(
      database.write((s) => s.run("INSERT INTO numbers VALUES (6)")),
      (error) => isSpaceError(error, "store/failed"),
    );
    const again = Database.open(path);
    assert.deepEqual(all(again), [5]);
    again.close();
  });

  test("a schema step is whole or not at all, and a newer schema is refused", (context) => {
    const { database } = opened(context);
    const version = (): unknown => database.get("PRAGMA user_version")?.["user_version"];
    assert.throws(
      () => migrate(database, ["CREATE TABLE a (x); CREATE TABLE a (x)"]),
      (error) => isSpaceError(error, "store/failed"),
    );
    assert.equal(version(), 0);
    migrate(database, ["CREATE TABLE a (x)"]);
    migrate(database, ["CREATE TABLE a (x)", "CREATE TABLE b (x)"]);
    assert.equal(version(), 2);
    assert.throws(
      () => migrate(database, ["CREATE TABLE a (x)"]),
      (error) => isSpaceError(error, "store/failed"),
    );
  });
});
