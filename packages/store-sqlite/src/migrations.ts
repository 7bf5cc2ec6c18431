// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { SpaceError } from "@space/model";
import type { Database } from "./database.ts";
import { integer } from "./row.ts";

const files = [
  "0001-control-plane.sql",
  "0002-signing-keys.sql",
  "0003-receivers.sql",
  "0004-enrolments.sql",
  "0005-recovery.sql",
  "0006-sealed-chains.sql",
  "0007-snapshots.sql",
  "0008-kept-snapshots.sql",
  "0009-moves.sql",
];

/** The schema, step by step, as SQL. A step that was released is never edited; `PRAGMA user_version` counts the steps taken. */
export function controlPlaneSchema(): readonly string[] {
  return files.map((file) => readFileSync(new URL(`./schema/${file}`, import.meta.url), "utf8"));
}

/** Brings the schema up to date, each step whole or not at all. Throws `store/failed` when it is newer than this program. */
export function migrate(database: Database, steps: readonly string[]): void {
  const version = integer(database.get("PRAGMA user_version") ?? {}, "user_version");
  if (version > steps.length) throw new SpaceError("store/failed", { step: "schema is newer" });
  for (const [index, sql] of steps.entries()) {
    if (index < version) continue;
    try {
      database.script(`BEGIN IMMEDIATE;\n${sql};\nPRAGMA user_version = ${index + 1};\nCOMMIT`);
    } catch (error) {
      database.script("ROLLBACK");
      throw error;
    }
  }
}
