// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A whole system with real guests, two workers and E2B's own client.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { Sandbox } from "e2b";
import { faultLanded } from "../src/fault-landed.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { sharedRig } from "../src/shared-rig.ts";

const rig = sharedRig({ workers: 2 });

async function post(path: string, body: object): Promise<void> {
  const answer = await fetch(`${rig().system.apiUrl}${path}`, {
    method: "POST",
    headers: { "x-api-key": rig().system.apiKey.reveal(), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
}

const sandboxes = 4;
const pausesEach = 25;
const digestOf = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");

/** Writes, pauses at once and reads after the resume, time after time. Returns how often, and how often from files alone. */
async function writeAndPause(first: number): Promise<{ pauses: number; fromFiles: number }> {
  const sandbox = await Sandbox.create("base", { ...rig().client(), timeoutMs: 600_000 });
  const written = new Map<string, string>();
  const done = { pauses: 0, fromFiles: 0 };
  const check = async (path: string): Promise<void> => {
    const read = await sandbox.files.read(path, { format: "bytes" });
    assert.equal(digestOf(read), written.get(path), `${path} after pause ${done.pauses}`);
  };
  for (let round = first; round < first + pausesEach; round += 1) {
    const path = `/home/user/file-${round % 5}`;
    const content = randomBytes(30_000 + round);
    await sandbox.files.write(path, new Blob([content]));
    written.set(path, digestOf(content));
    const memory = round % 2 === 0;
    await post(`/sandboxes/${sandbox.sandboxId}/pause`, { memory });
    done.pauses += 1;
    const workerID = rig().system.workerIds[Math.floor(round / 2) % 2];
    await post(
      `/v2/sandboxes/${sandbox.sandboxId}/connect`,
      memory ? { timeout: 600 } : { timeout: 600, workerID },
    );
    done.fromFiles += memory ? 0 : 1;
    await check(path);
  }
  for (const path of written.keys()) await check(path);
  await sandbox.kill();
  return done;
}

test("incident 19: what was acknowledged just before each of a hundred pauses is there after the resume, wherever it is", {
  skip,
}, async () => {
  const done = await Promise.all(Array.from({ length: sandboxes }, (_, at) => writeAndPause(at)));
  const sum = (key: "pauses" | "fromFiles"): number => done.reduce((total, one) => total + one[key], 0);
  faultLanded("a hundred pauses came right after a write", sum("pauses") - 99);
  faultLanded("half of them went on from files alone", sum("fromFiles") - 47);
});
