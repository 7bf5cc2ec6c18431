// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { auditFile } from "./audit-file.ts";

test("each line is one JSON object with its event and fields, for the owner's eyes alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "space-audit-"));
  const path = join(folder, "audit.jsonl");
  const audit = auditFile(path);
  audit.record("keys/replaced", { version: 1 });
  audit.record("keys/replaced", { version: 2 });
  await audit.close();
  const lines = readFileSync(path, "utf8").trim().split("\n");
  const events = lines.map((line): unknown => JSON.parse(line));
  assert.deepEqual(
    events.map((event) => (isObject(event) ? { ...event, time: 0 } : event)),
    [1, 2].map((version) => ({ level: "info", time: 0, version, event: "keys/replaced" })),
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  rmSync(folder, { recursive: true });
});

test("a disk that is full costs events, not the process, and does not hold up its end", () => {
  const program = `
    import { auditFile } from ${JSON.stringify(join(import.meta.dirname, "audit-file.ts"))};
    const audit = auditFile("/dev/full");
    for (let version = 0; version < 3; version++) {
      audit.record("keys/replaced", { version });
      await new Promise((settle) => setImmediate(settle));
    }
    process.stdout.write("alive");
    process.on("exit", () => audit.record("keys/replaced", { version: 9 }));
  `;
  const run = spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    timeout: 20_000,
    encoding: "utf8",
  });
  assert.deepEqual([run.status, run.stdout, run.stderr], [0, "alive", ""]);
});

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
