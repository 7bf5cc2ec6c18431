// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// `./space sandbox` against a real `./space up`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { checkout, type Finished, runProgram, type SpaceProcess, startSpace } from "../src/space-process.ts";

const resourcesBefore = hostResources();
const program = join(checkout, "space");
let space: SpaceProcess;

before(async () => {
  if (skip === false) space = await startSpace();
});

after(async () => {
  if (skip !== false) return;
  assert.equal(await space.stop(), 0);
  space.forget();
  assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

function sandbox(...args: readonly string[]): Promise<Finished> {
  const [what = "", ...rest] = args;
  return runProgram(program, ["sandbox", what, "--data", space.data, ...rest]);
}

async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await sandbox(...args, "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function created(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await sandbox("create", ...args);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

/** With bytes on its input. */
function piped(
  id: string,
  argv: readonly string[],
  input: Buffer,
): Promise<{ code: number | null; stdout: Buffer }> {
  const child = spawn(program, ["sandbox", "exec", "--data", space.data, id, "--", ...argv], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (bytes: Buffer) => chunks.push(bytes));
  child.stdin.end(input);
  return new Promise((resolve) =>
    child.once("close", (code) => resolve({ code, stdout: Buffer.concat(chunks) })),
  );
}

test("a command runs as it was written: its bytes, its errors, its exit code and its input", {
  skip,
}, async () => {
  const id = await created("--metadata", "owner=tester", "--env", "COLOUR=green");
  const run = await sandbox(
    "exec",
    id,
    "--",
    "sh",
    "-c",
    'echo "$COLOUR $1"; echo bad >&2; exit 7',
    "sh",
    "a  b",
  );
  assert.deepEqual([run.code, run.stdout, run.stderr], [7, "green a  b\n", "bad\n"]);
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7919) % 256));
  const echoed = await piped(id, ["cat"], bytes);
  assert.equal(echoed.code, 0);
  assert.ok(echoed.stdout.equals(bytes), `${echoed.stdout.length} bytes`);
  assert.equal((await sandbox("exec", id, "--", "sh", "-c", "kill -9 $$")).code, 137);
  const nowhere = await sandbox("exec", "iaaaaaaaaaaaaaaaaaaaa", "--", "true");
  assert.equal(nowhere.code, 125);
  assert.match(nowhere.stderr, /not found/);
  assert.equal((await sandbox("kill", id)).code, 0);
});

test("a sandbox's life: listed, paused, resumed, inspected, logged and killed", { skip }, async () => {
  const id = await created("--metadata", "owner=tester", "--timeout", "600", "--on-timeout", "pause");
  assert.match((await sandbox("ls")).stdout, new RegExp(`${id}  running  base .* owner=tester`));
  assert.equal((await sandbox("exec", id, "--", "sh", "-c", "echo kept > /home/user/note")).code, 0);

  assert.deepEqual(await json("pause", id), { sandboxID: id, state: "paused" });
  const listed = await json("ls", "--state", "paused");
  assert.deepEqual(
    (listed["sandboxes"] as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID),
    [id],
  );
  assert.equal((await sandbox("pause", id)).code, 1);
  assert.deepEqual(await json("resume", id, "--files-only"), { sandboxID: id, state: "running" });
  assert.equal((await sandbox("resume", id)).code, 1);
  assert.equal((await sandbox("exec", id, "--", "cat", "/home/user/note")).stdout, "kept\n");

  const { forks } = (await json("fork", id, "--count", "2")) as {
    forks: { sandbox: { sandboxID: string } }[];
  };
  assert.equal(new Set([id, ...forks.map(({ sandbox: child }) => child.sandboxID)]).size, 3);
  for (const { sandbox: child } of forks) {
    assert.equal((await sandbox("exec", child.sandboxID, "--", "cat", "/home/user/note")).stdout, "kept\n");
    assert.equal((await sandbox("kill", child.sandboxID)).code, 0);
  }
  assert.equal((await sandbox("fork", id, "--count", "none")).code, 1);

  const seen = await json("inspect", id);
  const { certificates, snapshots, activation } = seen["chain"] as Record<string, unknown>;
  assert.deepEqual([certificates, snapshots], [2, 1], "as before the fork, which begins chains of its own");
  assert.match(String(activation), /^act_/);
  assert.equal((seen["space"] as Record<string, unknown>)["generation"], "2");
  assert.match(
    (await sandbox("inspect", id)).stdout,
    /chain +2 certificates, 1 snapshots, verified to the root/,
  );

  const logs = (await sandbox("logs", id, "--sensitive", "--json")).stdout.trim().split("\n");
  const events = logs.map((line) => JSON.parse(line).event as string);
  assert.ok(events.length > 3, events.join());
  assert.deepEqual(
    logs.filter((line) => !line.includes(id)),
    [],
  );

  assert.equal((await sandbox("kill", id)).code, 0);
  const gone = await sandbox("inspect", id);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /not found/);
});

test("the variables of E2B's SDKs lead to the same sandboxes, and a wrong key to none", {
  skip,
}, async () => {
  const id = await created();
  const listed = await runProgram(program, ["sandbox", "ls"], space.environment);
  assert.match(listed.stdout, new RegExp(id));
  const refused = await runProgram(program, ["sandbox", "ls"], {
    ...space.environment,
    E2B_API_KEY: "e2b_0000",
  });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /API key/);
  assert.equal((await sandbox("kill", id)).code, 0);
});

test("moved, it runs elsewhere with its files, and says what became of its memory", { skip }, async () => {
  const id = await created("--timeout", "600");
  const whereabouts = async (): Promise<unknown> =>
    ((await json("inspect", id))["space"] as Record<string, unknown>)["workerID"]; // cast: shown by inspect
  assert.equal((await sandbox("exec", id, "--", "sh", "-c", "echo kept > /home/user/note")).code, 0);
  const before = await whereabouts();
  assert.deepEqual(await json("move", id), { sandboxID: id, state: "running", memoryMoved: false });
  assert.notEqual(await whereabouts(), before);
  assert.equal((await sandbox("exec", id, "--", "cat", "/home/user/note")).stdout, "kept\n");
  assert.equal(
    (await sandbox("move", id, "--to", String(before))).stdout,
    `${id} moved, with its files alone\n`,
  );
  assert.equal(await whereabouts(), before);
  assert.equal((await sandbox("move", id, "--to", "nowhere")).code, 1);
  assert.equal((await sandbox("kill", id)).code, 0);
  assert.equal((await sandbox("move", id)).code, 1);
});
