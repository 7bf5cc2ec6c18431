// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isSpaceError, newWorkerId, parseWorkerId } from "@space/model";
import { SqliteWorkerStore } from "@space/store-sqlite";
import { MemoryDisk, MemoryWorkerStore } from "../src/memory-worker-store.ts";
import { runtimeRecordStoreContract } from "./runtime-record-store.ts";

const workerId = parseWorkerId(`wrk_${"a".repeat(16)}`);

runtimeRecordStoreContract("runtime record store in memory", () => {
  const disk = new MemoryDisk();
  return { open: () => new MemoryWorkerStore(disk), dispose: () => undefined };
});

runtimeRecordStoreContract("runtime record store in SQLite", () => {
  const folder = mkdtempSync(join(tmpdir(), "records-"));
  const path = join(folder, "worker.db");
  return {
    open: () => new SqliteWorkerStore(path, () => workerId),
    dispose: () => rmSync(folder, { recursive: true }),
  };
});

test("a store makes its worker once and is readable by its owner only", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "records-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "worker.db");
  const first = new SqliteWorkerStore(path, () => workerId);
  for (const end of ["", "-wal", ".pid"]) assert.equal(statSync(path + end).mode & 0o777, 0o600);
  first.close();
  const other = newWorkerId({ bytes: (length) => new Uint8Array(length).fill(9) });
  const again = new SqliteWorkerStore(path, () => other);
  assert.equal(again.workerId, workerId);
  again.close();
});

const holder = `
import { SqliteWorkerStore } from "@space/store-sqlite";
const store = new SqliteWorkerStore(process.argv[1], () => "wrk_aaaaaaaaaaaaaaaa");
for (let version = 1; ; version += 1) {
  store.writeBundle(version, "bundle " + version);
  process.stdout.write(version + "\\n");
}`;

test("what was acknowledged survives kill -9, and the refusal names the process that holds the store", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "records-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "worker.db");
  const child = spawn(process.execPath, ["--input-type=module", "-e", holder, path], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let acknowledged = "";
  await new Promise<void>((enough) => {
    child.stdout.on("data", (bytes: Buffer) => {
      acknowledged += bytes.toString();
      if (acknowledged.length > 200) enough();
    });
  });
  assert.throws(
    () => new SqliteWorkerStore(path, () => workerId),
    (error) => isSpaceError(error, "data/in-use") && error.details.pid === child.pid,
  );
  child.kill("SIGKILL");
  await new Promise((ended) => child.once("close", ended));
  const store = new SqliteWorkerStore(path, () => workerId);
  const last = Number(acknowledged.trimEnd().split("\n").at(-1));
  assert.ok((store.readBundle()?.version ?? 0) >= last);
  store.close();
});
