// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Incident 23 and R-19 with a pid that the kernel really gives out again, in a pid namespace of the test's own.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { faultLanded } from "../src/fault-landed.ts";
import type { ReusedPidReport } from "../src/reused-pid-main.ts";

const folder = mkdtempSync(join(tmpdir(), "reused-pid-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A program in a pid namespace of its own. */
const apart = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const mayChoose = "test -w /proc/sys/kernel/ns_last_pid && echo 100 > /proc/sys/kernel/ns_last_pid";
const skip =
  spawnSync("unshare", [...apart, "sh", "-c", mayChoose]).status === 0
    ? false
    : "choosing a pid needs root and unshare";

async function report(): Promise<ReusedPidReport> {
  const program = join(import.meta.dirname, "../src/reused-pid-main.ts");
  const child = spawn("unshare", [...apart, process.execPath, program, join(folder, "socket")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  await once(child, "close");
  return JSON.parse(said) as ReusedPidReport; // cast: the program's own words
}

test("incident 23, R-19: a stranger with the recorded pid is neither signalled nor taken for the recorded process", {
  skip,
}, async () => {
  const seen = await report();
  faultLanded("two strangers got the recorded pid", seen.strangers - 1);
  assert.deepEqual(seen.before, { kind: "verified" });
  assert.deepEqual([seen.signalled, seen.strangerLives], [false, true]);
  assert.equal(seen.heldIsStranger, false, "a held process is that one, and ended");
  assert.equal(seen.holding, "endpoint/mismatch");
  assert.equal(seen.strangerHasOwnEvidence, true);
  assert.equal(seen.peerPid, seen.pid, "the kernel still names the pid on the old connection");
  assert.equal(seen.oldConnection.kind, "mismatch");
  const again = { kind: "mismatch", problem: "the pid was used again" } as const;
  assert.deepEqual(seen.oldConnectionByPidAlone, again);
  assert.deepEqual(seen.newConnection, again, "of the same program and user, at the same path (R-20)");
});
