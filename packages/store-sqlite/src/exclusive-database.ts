// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { SpaceError } from "@space/model";

const busy = 5;

/**
 * Opens a database that this process alone may use for as long as it is open: WAL, every commit synced, readable by its
 * owner only. The kernel drops the lock with the process. Throws `data/in-use` with the holder's pid (0 when unknown), or `store/failed`.
 */
export function openExclusive(path: string, schema: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    createForOwner(path);
    database = new DatabaseSync(path, { timeout: 0, enableForeignKeyConstraints: true });
    // Exclusive before WAL: the index of the log then lives in this process and the lock is never given up.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
    database.exec(`BEGIN IMMEDIATE; ${schema} COMMIT;`);
    writeFileSync(`${path}.pid`, `${process.pid}\n`, { mode: 0o600 });
    return database;
  } catch (cause) {
    database?.close();
    if (isBusy(cause)) throw new SpaceError("data/in-use", { pid: readPid(`${path}.pid`) }, { cause });
    throw new SpaceError("store/failed", { step: "open" }, { cause });
  }
}

/** Makes the file if it is not there. One that is there is not opened: closing it again would drop this process's lock. */
function createForOwner(path: string): void {
  try {
    closeSync(openSync(path, "ax", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === busy;
}

function readPid(path: string): number {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    return Number.isSafeInteger(pid) ? pid : 0;
  } catch {
    return 0; // the holder has not written it yet
  }
}
