// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Sandbox } from "e2b";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { checkout, runProgram, startSpace, until } from "../src/space-process.ts";

interface Options {
  readonly apiUrl: string;
  readonly sandboxUrl: string;
  readonly apiKey: string;
  readonly domain: string;
}

function clientOptions({
  E2B_API_URL,
  E2B_SANDBOX_URL,
  E2B_API_KEY,
  E2B_DOMAIN,
}: Readonly<Record<string, string>>): Options {
  return {
    apiUrl: E2B_API_URL ?? "",
    sandboxUrl: E2B_SANDBOX_URL ?? "",
    apiKey: E2B_API_KEY ?? "",
    domain: E2B_DOMAIN ?? "",
  };
}

/** Pids of the worker daemons of the installation in `data`. */
function workerPids(data: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return command.includes("worker-main") && command.includes(data);
      } catch {
        return false; // it ended while it was read
      }
    })
    .map(Number);
}

test("a second up on the same data directory is refused with the pid that holds it", { skip }, async () => {
  const space = await startSpace({ args: ["--workers", "1"] });
  const second = await runProgram(join(checkout, "space"), [
    "up",
    "--data",
    space.data,
    "--listen",
    "127.0.0.1:0",
    "--tls-listen",
    "127.0.0.1:0",
  ]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(`process ${space.child.pid}\\b`));
  assert.equal(await space.stop(), 0);
  space.forget();
});

test("the env file is the owner's alone, and the API key is not in the database", { skip }, async () => {
  const space = await startSpace({ args: ["--workers", "1"] });
  assert.equal(statSync(join(space.data, "space.env")).mode & 0o777, 0o600);
  const key = space.environment["E2B_API_KEY"] ?? "";
  assert.match(key, /^e2b_[0-9a-f]{40}$/);
  for (const file of readdirSync(join(space.data, "control")).filter((name) => name.includes(".db"))) {
    assert.ok(!readFileSync(join(space.data, "control", file)).includes(key), file);
  }
  assert.equal(await space.stop(), 0);
  space.forget();
});

test("after kill -9 of a worker daemon the same processes inside still run and answer; nothing is left after the stop", {
  skip,
}, async () => {
  const before = hostResources();
  const space = await startSpace({ args: ["--workers", "1"] });
  const sandbox = await Sandbox.create("base", { ...clientOptions(space.environment), timeoutMs: 120_000 });
  const counter = await sandbox.commands.run(
    "i=0; while :; do i=$((i+1)); echo $i > /home/user/count; sleep 0.05; done",
    { background: true },
  );
  await until("the counter counts", async () => sandbox.files.exists("/home/user/count"));
  const [pid = 0] = workerPids(space.data);
  process.kill(pid, "SIGKILL");
  await until("a new daemon", () => workerPids(space.data).some((now) => now !== pid));
  await until("the sandbox answers again", async () =>
    sandbox.commands.run("echo back").then(
      (run) => run.stdout === "back\n",
      () => false,
    ),
  );
  const listed = await sandbox.commands.list();
  assert.ok(
    listed.some((process) => process.pid === counter.pid),
    "the same process runs",
  );
  const first = Number(await sandbox.files.read("/home/user/count"));
  await until(
    "the counter goes on",
    async () => Number(await sandbox.files.read("/home/user/count")) > first,
  );
  assert.equal(await space.stop(), 0);
  space.forget();
  assert.deepEqual(leftBehind(before, hostResources()), {});
});

test("sandboxes are paused by a stop and come back with their files at the next up", { skip }, async () => {
  const first = await startSpace();
  const sandbox = await Sandbox.create("base", { ...clientOptions(first.environment), timeoutMs: 600_000 });
  await sandbox.files.write("/home/user/kept.txt", "kept");
  assert.equal(await first.stop(), 0);
  const second = await startSpace({ data: first.data });
  const again = await Sandbox.connect(sandbox.sandboxId, clientOptions(second.environment));
  assert.equal(await again.files.read("/home/user/kept.txt"), "kept");
  await again.kill();
  assert.equal(await second.stop(), 0);
  second.forget();
});
