// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { counted, moveElsewhere, NumberedStreams, placeOf, resumeElsewhere } from "../src/moved-sandboxes.ts";
import { needsRunsc } from "../src/needs-runsc.ts";
import { until } from "../src/space-process.ts";

/** Counts into a file, with the digest of random bytes that it holds in its memory. */
const counter = `
import hashlib, os, time
held = os.urandom(4 << 20)
n = 0
while True:
  n += 1
  with open("/tmp/next", "w") as file: file.write("%d %s %d" % (n, hashlib.sha256(held).hexdigest(), os.getpid()))
  os.rename("/tmp/next", "/tmp/count")
  print(n, flush=True)
  time.sleep(0.05)
`;

async function counts(sandbox: Sandbox, beyond: number): Promise<void> {
  const end = performance.now() + 20_000;
  while (!((await counted(sandbox).catch(() => ({ n: 0 }))).n > beyond)) {
    if (performance.now() > end) throw new Error("the counter stands still");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("E2B's SDK on gVisor", { skip: needsRunsc, timeout: 120_000 }, () => {
  const resourcesBefore = hostResources();
  let rig: EmbeddedRig;
  before(async () => {
    rig = await startRig({ substrate: "gvisor", workers: 2 });
  });
  after(async () => {
    await rig.end();
    assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
  });

  it("a Python counter goes on where a pause stopped it, on the same worker", async () => {
    const sandbox = await Sandbox.create(rig.client());
    await sandbox.files.write("/tmp/counter.py", counter);
    const command = await sandbox.commands.run("python3 /tmp/counter.py", { background: true });
    await counts(sandbox, 5);
    const before = await counted(sandbox);
    assert.equal((await sandbox.commands.list()).length, 1);

    await sandbox.pause();
    const resumed = await Sandbox.connect(sandbox.sandboxId, rig.client());
    const seen = await counted(resumed);
    assert.equal(seen.who, before.who, "the same process, with the same bytes");
    assert.ok(seen.n >= before.n);
    await counts(resumed, seen.n);
    const [listed] = await resumed.commands.list();
    assert.equal(listed?.pid, command.pid);
    assert.equal(await resumed.commands.kill(command.pid), true);
    await resumed.kill();
  });

  it("a Python counter goes on on another worker, three times over", async () => {
    const sandbox = await Sandbox.create(rig.client());
    await sandbox.files.write("/tmp/counter.py", counter);
    await sandbox.commands.run("python3 /tmp/counter.py", { background: true });
    await counts(sandbox, 5);
    const { who } = await counted(sandbox);
    await sandbox.files.write("/home/user/kept", "kept");
    const places = new Set<string>();
    for (let move = 0; move < 3; move += 1) {
      const { n } = await counted(sandbox);
      const from = await placeOf(rig, sandbox.sandboxId);
      places.add(from);
      await sandbox.pause();
      await resumeElsewhere(rig, sandbox.sandboxId, from);
      const seen = await counted(sandbox);
      assert.equal(seen.who, who);
      assert.ok(seen.n >= n, `${seen.n} after ${n}`);
      await counts(sandbox, seen.n);
    }
    assert.equal(places.size, 2, "it was on both workers");
    assert.equal((await sandbox.commands.run("cat /home/user/kept")).stdout, "kept");
    await sandbox.kill();
  });

  it("R-22: a command's output and a terminal go on for the same client over three moves, each byte once and in order", async () => {
    const sandbox = await Sandbox.create(rig.client());
    const streams = await NumberedStreams.begin(sandbox, 600);
    await until("the first numbers", () => streams.counted.length > 20);
    const places = new Set<string>();
    for (let round = 0; round < 3; round += 1) {
      await streams.type(10);
      const seen = streams.counted.length;
      const from = await placeOf(rig, sandbox.sandboxId);
      places.add(from);
      if (round === 0) await sandbox.pause();
      if (round === 0) await resumeElsewhere(rig, sandbox.sandboxId, from);
      else assert.equal(await moveElsewhere(rig, sandbox.sandboxId, from), true, "with its memory");
      assert.notEqual(await placeOf(rig, sandbox.sandboxId), from);
      await streams.type(10);
      await until("the command to be heard again", () => streams.counted.length > seen + 20);
      await until("the lines to come back", () => streams.isReturned);
      streams.check();
    }
    assert.equal(places.size, 2, "it was on both workers");
    await assert.rejects(streams.command.wait(), { exitCode: 7 });
    assert.equal(streams.counted.length, 600);
    streams.check();
    await sandbox.kill();
  });
});
