// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Sandbox } from "e2b";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { checkout, runProgram, type SpaceProcess, startSpace, until } from "../src/space-process.ts";

function clientOptions({ environment }: SpaceProcess) {
  const { E2B_API_URL: apiUrl = "", E2B_API_KEY: apiKey = "", E2B_DOMAIN: domain = "" } = environment;
  return { apiUrl, sandboxUrl: apiUrl, apiKey, domain, timeoutMs: 600_000 };
}

test("a stop whose terminal is gone still pauses what runs and leaves nothing", { skip }, async () => {
  const before = hostResources();
  const space = await startSpace({ args: ["--workers", "1"] });
  const sandbox = await Sandbox.create("base", clientOptions(space));
  await sandbox.commands.run("true");
  const ended = new Promise<number | null>((settle) => space.child.once("exit", settle));
  // What is printed from now on has nowhere to go, as after the end of a terminal.
  space.child.stdout?.destroy();
  space.child.stderr?.destroy();
  space.child.kill("SIGHUP");
  assert.equal(await ended, 0);
  assert.deepEqual(leftBehind(before, hostResources()), {});
  space.forget();
});

for (const listener of ["--listen", "--tls-listen"]) {
  test(`a ${listener} port in use is said in one line, and nothing is left`, { skip }, async () => {
    const before = hostResources();
    const occupant = createServer();
    await new Promise<void>((settle) => occupant.listen(0, "127.0.0.1", settle));
    const address = occupant.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const data = mkdtempSync(join(tmpdir(), "space-e2e-"));
    const other = listener === "--listen" ? "--tls-listen" : "--listen";
    const places = [listener, `127.0.0.1:${port}`, other, "127.0.0.1:0"];
    const run = await runProgram(join(checkout, "space"), [
      "up",
      "--data",
      data,
      "--workers",
      "1",
      ...places,
    ]);
    occupant.close();
    assert.equal(run.code, 1);
    assert.match(run.stderr, new RegExp(`^space: .*127\\.0\\.0\\.1:${port}.*${listener}`));
    assert.equal(run.stderr.trim().split("\n").length, 1);
    assert.deepEqual(leftBehind(before, hostResources()), {});
    rmSync(data, { recursive: true });
  });
}

test("an up that fails ends nothing of what an earlier one, which was killed, left running", {
  skip,
}, async () => {
  const before = hostResources();
  const first = await startSpace({ args: ["--workers", "1"] });
  const sandbox = await Sandbox.create("base", clientOptions(first));
  await sandbox.files.write("/home/user/kept.txt", "acknowledged");
  const killed = new Promise((settle) => first.child.once("exit", settle));
  first.child.kill("SIGKILL");
  await killed;
  // Found out last of all, when the workers are connected.
  renameSync(join(first.data, "api-key"), join(first.data, "api-key.aside"));
  mkdirSync(join(first.data, "api-key"));
  const free = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--workers", "1"];
  const failed = await runProgram(join(checkout, "space"), ["up", "--data", first.data, ...free]);
  assert.equal(failed.code, 1, failed.stderr);
  assert.match(failed.stderr, /EISDIR/);
  rmdirSync(join(first.data, "api-key"));
  renameSync(join(first.data, "api-key.aside"), join(first.data, "api-key"));
  const second = await startSpace({ data: first.data, args: ["--workers", "1"] });
  const again = await Sandbox.connect(sandbox.sandboxId, clientOptions(second));
  assert.equal(await again.files.read("/home/user/kept.txt"), "acknowledged");
  await again.kill();
  assert.equal(await second.stop(), 0);
  second.forget();
  assert.deepEqual(leftBehind(before, hostResources()), {});
});

/** The newest process of this installation's worker. */
function daemonOf(data: string): number {
  const found = readdirSync("/proc").filter((name) => {
    if (!/^[0-9]+$/.test(name)) return false;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return command.includes("worker-main") && command.includes(data);
    } catch {
      return false; // it ended while it was read
    }
  });
  return Number(found[0] ?? assert.fail("no daemon runs"));
}

/** How often control planes on this directory have come as far as to their gateway. */
function gatewaysOf(data: string): number {
  const folder = join(data, "audit", "control-plane");
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  return texts.join("").split('"event":"mesh/certified","fields":{"name":"gateway"').length - 1;
}

test("an up after one that was killed waits for that one's daemon to end", { skip }, async () => {
  const before = hostResources();
  const first = await startSpace({ args: ["--workers", "1"] });
  const daemon = daemonOf(first.data);
  const gateways = gatewaysOf(first.data);
  const killed = new Promise((settle) => first.child.once("exit", settle));
  process.kill(daemon, "SIGSTOP"); // it hears of nothing, and holds its store
  first.child.kill("SIGKILL");
  await killed;
  const starting = startSpace({ data: first.data, args: ["--workers", "1"] });
  try {
    await until("the next one needs the store", () => gatewaysOf(first.data) > gateways);
  } finally {
    process.kill(daemon, "SIGCONT");
  }
  const second = await starting;
  assert.notEqual(daemonOf(first.data), daemon);
  assert.equal(await second.stop(), 0);
  second.forget();
  assert.deepEqual(leftBehind(before, hostResources()), {});
});

test("a worker that cannot start leaves nothing behind when up gives up", { skip }, async () => {
  const before = hostResources();
  const data = mkdtempSync(join(tmpdir(), "space-e2e-"));
  const free = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--workers", "1"];
  mkdirSync(join(data, "workers", "1", "port"), { recursive: true }); // a file there, else: the daemon ends late in its start
  const child = spawn(join(checkout, "space"), ["up", "--data", data, ...free], { stdio: "ignore" });
  const ended = new Promise<number | null>((settle) => child.once("exit", settle));
  const log = join(data, "workers", "1", "worker.log");
  await until(
    "the daemon has ended by itself",
    () => existsSync(log) && readFileSync(log, "utf8").includes("EISDIR"),
  );
  child.kill("SIGTERM");
  assert.notEqual(await ended, null);
  assert.deepEqual(leftBehind(before, hostResources()), {});
  rmSync(data, { recursive: true });
});

test("an env file that cannot be written ends everything that was started", { skip }, async () => {
  const before = hostResources();
  const data = mkdtempSync(join(tmpdir(), "space-e2e-"));
  const free = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--workers", "1"];
  const envFile = join(data, "absent", "space.env");
  const run = await runProgram(join(checkout, "space"), [
    "up",
    "--data",
    data,
    "--env-file",
    envFile,
    ...free,
  ]);
  assert.equal(run.code, 1);
  assert.ok(run.stderr.startsWith(`space: cannot write ${envFile}`), run.stderr);
  assert.deepEqual(leftBehind(before, hostResources()), {});
  rmSync(data, { recursive: true });
});

test("an env file that everybody could read is the owner's alone before the key is in it", {
  skip,
}, async () => {
  const data = mkdtempSync(join(tmpdir(), "space-e2e-"));
  const path = join(data, "space.env");
  writeFileSync(path, "", { mode: 0o644 });
  const reader = openSync(path, "r"); // opened while it was everybody's
  const space = await startSpace({ data, args: ["--workers", "1"] });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(readFileSync(reader, "utf8"), "");
  closeSync(reader);
  assert.equal(await space.stop(), 0);
  space.forget();
});

test("a lock that a power cut left empty does not hold the data directory for ever", { skip }, async () => {
  const data = mkdtempSync(join(tmpdir(), "space-e2e-"));
  writeFileSync(join(data, "lock"), "");
  const space = await startSpace({ data, args: ["--workers", "1"] });
  assert.equal(await space.stop(), 0);
  space.forget();
});
