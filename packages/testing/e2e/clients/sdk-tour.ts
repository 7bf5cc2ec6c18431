// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The tour that an E2B user's program takes, with the SDK package named in the first argument. Exit code 0 when all holds.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type * as E2b from "e2b";

const { Sandbox } = (await import(process.argv[2] ?? "e2b")) as typeof E2b; // cast: the same surface in each version

const sandbox = await Sandbox.create("base", {
  timeoutMs: 120_000,
  metadata: { tour: "yes" },
  envs: { GREETING: "hello" },
});
assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/);

const run = await sandbox.commands.run("python3 -c 'print(6*7)'");
assert.deepEqual([run.exitCode, run.stdout, run.stderr], [0, "42\n", ""]);

const greeting = await sandbox.commands
  .run('echo "$GREETING $OTHER from $(pwd)" >&2; exit 3', { envs: { OTHER: "you" }, cwd: "/tmp" })
  .catch((error: unknown) => error);
assert.ok(greeting instanceof Error && "exitCode" in greeting && "stderr" in greeting);
assert.deepEqual([greeting.exitCode, greeting.stderr], [3, "hello you from /tmp\n"]);
assert.equal((await sandbox.commands.run("whoami")).stdout, "user\n");
assert.equal((await sandbox.commands.run("whoami", { user: "root" })).stdout, "root\n");

const bytes = randomBytes(1024 * 1024);
const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
await sandbox.files.write("/home/user/random.bin", copy);
assert.ok(Buffer.from(await sandbox.files.read("/home/user/random.bin", { format: "bytes" })).equals(bytes));
await sandbox.files.write([
  { path: "a.txt", data: "one" },
  { path: "deep/er/b.txt", data: "two – ünïcode" },
]);
assert.equal(await sandbox.files.read("deep/er/b.txt"), "two – ünïcode");
assert.deepEqual(
  (await sandbox.files.list("/home/user/deep")).map(({ name, type }) => [name, type]),
  [["er", "dir"]],
);
assert.ok(await sandbox.files.exists("a.txt"));
assert.ok(!(await sandbox.files.exists("nowhere.txt")));
assert.ok(await sandbox.files.makeDir("made/here"));
assert.ok(!(await sandbox.files.makeDir("made/here")));
assert.equal((await sandbox.files.rename("a.txt", "made/c.txt")).path, "/home/user/made/c.txt");
assert.equal((await sandbox.files.getInfo("made/c.txt")).size, 3);
await sandbox.files.remove("made");
assert.ok(!(await sandbox.files.exists("made")));

const lines: string[] = [];
const background = await sandbox.commands.run("read line; echo got $line; sleep 100", {
  background: true,
  stdin: true,
  onStdout: (text) => void lines.push(text),
});
assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === background.pid));
await sandbox.commands.sendStdin(background.pid, "input\n");
while (!lines.join("").includes("got input")) await new Promise((settle) => setTimeout(settle, 10));
assert.ok(await sandbox.commands.kill(background.pid));
assert.ok(!(await sandbox.commands.kill(background.pid)));
await assert.rejects(sandbox.commands.run("sleep 30", { timeoutMs: 300 }));

const listed = await Sandbox.list({ query: { metadata: { tour: "yes" } } }).nextItems();
assert.deepEqual(
  listed.map(({ sandboxId, state }) => [sandboxId, state]),
  [[sandbox.sandboxId, "running"]],
);

const pause = "pause" in sandbox ? sandbox.pause.bind(sandbox) : undefined;
await (pause === undefined ? Sandbox.betaPause(sandbox.sandboxId) : pause());
assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).state, "paused");
const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 });
assert.equal(again.sandboxId, sandbox.sandboxId);
assert.ok(Buffer.from(await again.files.read("/home/user/random.bin", { format: "bytes" })).equals(bytes));
assert.equal((await again.commands.run("echo $GREETING")).stdout, "hello\n");
await again.setTimeout(60_000);
assert.ok(await again.isRunning());
assert.ok(await again.kill());
assert.ok(!(await Sandbox.kill(sandbox.sandboxId)));
assert.equal(await again.isRunning(), false);
process.stdout.write("tour done\n");
