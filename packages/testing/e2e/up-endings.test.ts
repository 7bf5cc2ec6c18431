// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Sandbox } from "e2b";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { checkout, runProgram, startSpace } from "../src/space-process.ts";

const skip = process.getuid?.() === 0 ? false : "sandboxes need root";

test("a stop whose terminal is gone still pauses what runs and leaves nothing", { skip }, async () => {
  const before = hostResources();
  const space = await startSpace({ args: ["--workers", "1"] });
  const { E2B_API_URL: apiUrl = "", E2B_API_KEY: apiKey = "", E2B_DOMAIN: domain = "" } = space.environment;
  const sandbox = await Sandbox.create("base", {
    apiUrl,
    sandboxUrl: apiUrl,
    apiKey,
    domain,
    timeoutMs: 600_000,
  });
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
