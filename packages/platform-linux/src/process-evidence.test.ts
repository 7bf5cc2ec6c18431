// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import {
  evidenceMismatch,
  processEvidence,
  processStartTime,
  signalProcess,
  stillRuns,
} from "./process-evidence.ts";

test("R-19 evidence of a running process is stable, and of an ended one cannot be had", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const evidence = processEvidence(pid);
  assert.equal(evidenceMismatch(evidence, processEvidence(pid)), undefined);
  assert.ok(stillRuns(evidence));
  assert.ok(signalProcess(evidence, 9));
  await once(child, "exit");
  assert.ok(!stillRuns(evidence));
  assert.throws(
    () => processEvidence(pid),
    (error) => isSpaceError(error, "endpoint/unverifiable"),
  );
});

test("incident 23: a reused pid is not signalled", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const stranger = { pid, startTime: "1" };
  assert.ok(!signalProcess(stranger, 9));
  assert.notEqual(processStartTime(pid), undefined);
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("R-19 each fact that differs is named", () => {
  const mine = processEvidence(process.pid);
  assert.equal(evidenceMismatch(mine, { ...mine, startTime: "1" }), "the pid was used again");
  assert.equal(evidenceMismatch(mine, { ...mine, pid: 1 }), "another pid");
  assert.equal(
    evidenceMismatch(mine, { ...mine, executable: { ...mine.executable, inode: "1" } }),
    "another executable",
  );
  assert.equal(
    evidenceMismatch(mine, { ...mine, executable: { ...mine.executable, device: "1" } }),
    "another executable",
  );
  assert.equal(evidenceMismatch(mine, { ...mine, uid: mine.uid + 1 }), "another user id");
});
