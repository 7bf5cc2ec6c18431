// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { counted, moveElsewhere, NumberedStreams, placeOf, resumeElsewhere } from "../src/moved-sandboxes.ts";
import { needsCriu } from "../src/needs-criu.ts";

/** Counts into a file, with the digest of the random bytes that it holds in its memory, and who it is. */
const counter = `
import hashlib, os, sys, time
held = os.urandom(int(sys.argv[1]) << 20)
digest = hashlib.sha256(held)
n = 0
while True:
  n += 1
  if n % 100 == 0: digest = hashlib.sha256(held)
  with open("/tmp/next", "w") as file: file.write("%d %s %d" % (n, digest.hexdigest(), os.getpid()))
  os.rename("/tmp/next", "/tmp/count")
  time.sleep(0.02)
`;
const server = "python3 -m http.server 8000 --bind 127.0.0.1 --directory /etc";
const fetched =
  "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/hostname').status)\"";

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("E2B's SDK on namespaces whose memory CRIU saves", { skip: needsCriu, timeout: 240_000 }, () => {
  const resourcesBefore = hostResources();
  let rig: EmbeddedRig;
  before(async () => {
    rig = await startRig({ memory: "criu", workers: 2 });
  });
  after(async () => {
    await rig.end();
    assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
  });

  async function move(sandboxId: string): Promise<void> {
    await resumeElsewhere(rig, sandboxId, await placeOf(rig, sandboxId));
  }

  it("a counter with 64 MB of random data, a terminal and a server go on on another worker, three times over", async (t) => {
    const sandbox = await Sandbox.create(rig.client());
    await sandbox.files.write("/tmp/counter.py", counter);
    const command = await sandbox.commands.run("python3 /tmp/counter.py 64", { background: true });
    await sandbox.commands.run(server, { background: true });
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => undefined });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from("held=in-memory\n"));
    await until("the counter", async () => (await counted(sandbox)).n > 5);
    await until("the server", async () => (await sandbox.commands.run(fetched)).stdout === "200\n");
    const { who } = await counted(sandbox);
    assert.equal(who.split(" ")[1], String(command.pid));
    await sandbox.files.write("/home/user/kept", "kept");
    const places = new Set<string>();
    for (let round = 0; round < 3; round += 1) {
      places.add(await placeOf(rig, sandbox.sandboxId));
      const { n } = await counted(sandbox);
      const began = performance.now();
      await sandbox.pause();
      const paused = performance.now();
      await move(sandbox.sandboxId);
      const resumed = performance.now();
      t.diagnostic(`pause ${Math.round(paused - began)} ms, resume ${Math.round(resumed - paused)} ms`);
      const seen = await counted(sandbox);
      assert.equal(seen.who, who, "the same process, with the same bytes");
      assert.ok(seen.n >= n, `${seen.n} after ${n}`);
      await until(
        "the counter to go on, past a new digest",
        async () => (await counted(sandbox)).n > seen.n + 101,
      );
      assert.equal((await counted(sandbox)).who, who);
      assert.equal((await sandbox.commands.run(fetched)).stdout, "200\n");
    }
    assert.equal(places.size, 2, "it was on both workers");
    assert.equal((await sandbox.commands.run("cat /home/user/kept; pgrep -c bash")).stdout, "kept1\n");
    await sandbox.kill();
  });

  it("R-22: a command's output and a terminal go on for the same client over six moves, each byte once and in order", async (t) => {
    const sandbox = await Sandbox.create(rig.client());
    const { endAt } = await sandbox.getInfo();
    const streams = await NumberedStreams.begin(sandbox, 1000);
    await until("the first numbers", async () => streams.counted.length > 20);
    const places = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      await streams.type(10);
      const seen = streams.counted.length;
      const from = await placeOf(rig, sandbox.sandboxId);
      const began = performance.now();
      // A pause and a resume, and then the same as one operation.
      if (round === 0) await sandbox.pause();
      if (round === 0) await move(sandbox.sandboxId);
      else assert.equal(await moveElsewhere(rig, sandbox.sandboxId, from), true, "with its memory");
      t.diagnostic(`moved in ${Math.round(performance.now() - began)} ms`);
      const to = await placeOf(rig, sandbox.sandboxId);
      assert.notEqual(to, from);
      places.add(to);
      await streams.type(10);
      await until("the command to be heard again", async () => streams.counted.length > seen + 20);
      await until("the lines to come back", async () => streams.isReturned);
      streams.check();
    }
    assert.equal(places.size, 2, "it was on both workers");
    await assert.rejects(streams.command.wait(), { exitCode: 7 });
    assert.equal(streams.counted.length, 1000);
    streams.check();
    assert.ok((await sandbox.getInfo()).endAt >= endAt, "no move has shortened its life");
    await sandbox.kill();
  });

  it("a move of what cannot be saved is refused with what to change, and the sandbox and its streams run on", async () => {
    const sandbox = await Sandbox.create(rig.client());
    const server = "import socket, time; s = socket.create_server(('127.0.0.1', 8000))";
    const waiting = `${server}; c = socket.create_connection(('127.0.0.1', 8000)); open('/tmp/ready', 'w'); time.sleep(100)`;
    const command = await sandbox.commands.run(`python3 -c "${waiting}"`, { background: true });
    const streams = await NumberedStreams.begin(sandbox, 400);
    await until("the program", () => sandbox.files.exists("/tmp/ready"));
    const from = await placeOf(rig, sandbox.sandboxId);
    await assert.rejects(moveElsewhere(rig, sandbox.sandboxId, from), /has not been accepted/);
    assert.equal(await placeOf(rig, sandbox.sandboxId), from);
    await streams.type(5);
    await until("the lines to come back", async () => streams.isReturned);
    assert.equal(await sandbox.commands.kill(command.pid), true);
    assert.equal(await moveElsewhere(rig, sandbox.sandboxId, from), true);
    await assert.rejects(streams.command.wait(), { exitCode: 7 });
    streams.check();
    await sandbox.kill();
  });

  it("on its own worker too, with the same process and no other", async () => {
    const sandbox = await Sandbox.create(rig.client());
    await sandbox.files.write("/tmp/counter.py", counter);
    const command = await sandbox.commands.run("python3 /tmp/counter.py 4", { background: true });
    await until("the counter", async () => (await counted(sandbox)).n > 5);
    const before = await counted(sandbox);
    await sandbox.pause();
    const resumed = await Sandbox.connect(sandbox.sandboxId, rig.client());
    const seen = await counted(resumed);
    assert.equal(seen.who, before.who);
    await until("the counter to go on", async () => (await counted(resumed)).n > seen.n);
    const listed = await resumed.commands.list();
    assert.deepEqual(
      listed.map(({ pid }) => pid),
      [command.pid],
    );
    await resumed.kill();
  });

  it("what cannot be saved is said, and the sandbox runs on", async () => {
    const sandbox = await Sandbox.create(rig.client());
    const server = "import socket, time; s = socket.create_server(('127.0.0.1', 8000))";
    const waiting = `${server}; c = socket.create_connection(('127.0.0.1', 8000)); open('/tmp/ready', 'w'); time.sleep(100)`;
    const command = await sandbox.commands.run(`python3 -c "${waiting}"`, { background: true });
    await until("the program", () => sandbox.files.exists("/tmp/ready"));
    await assert.rejects(sandbox.pause(), (error) => {
      assert.match(String(error), /has not been accepted/);
      return true;
    });
    assert.equal(await sandbox.commands.kill(command.pid), true);
    await sandbox.pause();
    const resumed = await Sandbox.connect(sandbox.sandboxId, rig.client());
    assert.equal((await resumed.commands.run("echo on")).stdout, "on\n");
    await resumed.kill();
  });
});
