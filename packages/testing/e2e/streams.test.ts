// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// R-22 with real guests: what E2B's own client sees of its streams while its sandbox is paused, moved or re-adopted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CommandHandle, Sandbox } from "e2b";
import { faultLanded } from "../src/fault-landed.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { sharedRig } from "../src/shared-rig.ts";
import { until } from "../src/space-process.ts";

const rig = sharedRig({ workers: 2 });

function create(): Promise<Sandbox> {
  return Sandbox.create("base", { ...rig().client(), timeoutMs: 300_000 });
}

/** Resumes the sandbox, on this worker if one is named. */
async function resume({ sandboxId }: Sandbox, workerID?: string): Promise<void> {
  const answer = await fetch(`${rig().system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
    method: "POST",
    headers: { "x-api-key": rig().system.apiKey.reveal(), "content-type": "application/json" },
    body: JSON.stringify({ timeout: 300, ...(workerID === undefined ? {} : { workerID }) }),
  });
  assert.equal(answer.status, 201, await answer.text());
}

async function workerOf({ sandboxId }: Sandbox): Promise<string> {
  const answer = await fetch(`${rig().system.apiUrl}/sandboxes/${sandboxId}`, {
    headers: { "x-api-key": rig().system.apiKey.reveal() },
  });
  const { space } = (await answer.json()) as { space: { workerID: string } }; // cast: our own API's answer
  return space.workerID;
}

/** A program that counts to `last`, and what its client has seen of it. */
async function count(
  sandbox: Sandbox,
  last: number,
): Promise<{ handle: CommandHandle; seen: () => number[] }> {
  let output = "";
  const handle = await sandbox.commands.run(`for i in $(seq ${last}); do echo $i; sleep 0.02; done`, {
    background: true,
    timeoutMs: 0,
    onStdout: (text) => {
      output += text;
    },
  });
  return { handle, seen: () => output.split("\n").slice(0, -1).map(Number) };
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);

test("R-22: a program's output goes on across pauses on one worker, and its end is told", {
  skip,
}, async () => {
  const sandbox = await create();
  const { handle, seen } = await count(sandbox, 60);
  for (let turn = 1; turn <= 3; turn += 1) {
    await until("it has counted on", () => seen().length >= turn * 10);
    await sandbox.pause();
    await resume(sandbox);
  }
  const { exitCode } = await handle.wait();
  assert.equal(exitCode, 0);
  assert.deepEqual(seen(), upTo(60));
  await sandbox.kill();
});

test("R-22, incident 21: a program's output goes on when the worker's daemon is killed and starts again", {
  skip,
}, async () => {
  const sandbox = await create();
  const { handle, seen } = await count(sandbox, 60);
  await until("it has counted on", () => seen().length >= 10);
  const workerId = await workerOf(sandbox);
  const daemon = (): number | undefined =>
    [...rig().system.workerPids()].find(([worker]) => worker === workerId)?.[1];
  const pid = daemon() ?? assert.fail("the daemon runs");
  const before = seen().length;
  process.kill(pid, "SIGKILL");
  const { exitCode } = await handle.wait();
  assert.equal(exitCode, 0);
  assert.notEqual(daemon(), pid);
  faultLanded("another daemon passed on the rest", daemon() === undefined ? 0 : seen().length - before);
  assert.deepEqual(seen(), upTo(60));
  await sandbox.kill();
});

test("R-22, incident 9: a process that a move to another worker left behind ends its stream, typed and at once", {
  skip,
}, async () => {
  const sandbox = await create();
  const { handle, seen } = await count(sandbox, 100_000);
  await until("it has counted on", () => seen().length >= 5);
  const from = await workerOf(sandbox);
  await sandbox.pause();
  await resume(
    sandbox,
    rig().system.workerIds.find((worker) => worker !== from),
  );
  faultLanded("it moved, and its process did not", Number((await workerOf(sandbox)) !== from));
  await assert.rejects(handle.wait(), /aborted|10: /);
  assert.deepEqual(seen(), upTo(seen().length), "nothing was doubled, lost or out of order until then");
  await sandbox.kill();
});

test("a move without memory takes the files along, and says that it is so", { skip }, async () => {
  const sandbox = await create();
  await sandbox.files.write("/home/user/kept", "kept");
  const from = await workerOf(sandbox);
  const answer = await fetch(`${rig().system.apiUrl}/sandboxes/${sandbox.sandboxId}/move`, {
    method: "POST",
    headers: { "x-api-key": rig().system.apiKey.reveal() },
  });
  assert.deepEqual([answer.status, answer.headers.get("space-memory-moved")], [204, "false"]);
  assert.notEqual(await workerOf(sandbox), from);
  assert.equal(await sandbox.files.read("/home/user/kept"), "kept");
  await sandbox.kill();
});

test("R-22: a watch goes on after a pause on the same worker", { skip }, async () => {
  const sandbox = await create();
  await sandbox.files.makeDir("/home/user/watched");
  const events: string[] = [];
  const watch = await sandbox.files.watchDir("/home/user/watched", ({ name }) => void events.push(name), {
    timeoutMs: 0,
  });
  await sandbox.files.write("/home/user/watched/before", "1");
  await until("the first file is told", () => events.includes("before"));
  await sandbox.pause();
  await resume(sandbox);
  await sandbox.files.write("/home/user/watched/after", "2");
  await until("the second file is told", () => events.includes("after"));
  await watch.stop();
  await sandbox.kill();
});

test("a killed sandbox's stream ends as clients know it", { skip }, async () => {
  const sandbox = await create();
  const { handle, seen } = await count(sandbox, 100_000);
  await until("it has counted on", () => seen().length >= 5);
  await sandbox.kill();
  await assert.rejects(handle.wait(), /killed|end of life/);
});
