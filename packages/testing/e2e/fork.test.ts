// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// E2B's own client takes snapshots of what goes on, creates from them, and forks: with real processes, on each driver.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { EmbeddedOptions } from "@space/space";
import { RateLimitError, Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { counted, NumberedStreams } from "../src/moved-sandboxes.ts";
import { needsCriu } from "../src/needs-criu.ts";
import { needsRoot } from "../src/needs-root.ts";
import { needsRunsc } from "../src/needs-runsc.ts";
import { checkout, runProgram, until } from "../src/space-process.ts";

/** Counts into a file, with the digest of random bytes that it holds in its memory; draws anew each time that it is asked to. */
const counter = `
import hashlib, os, time
held = os.urandom(4 << 20)
n = 0
while True:
  n += 1
  with open("/tmp/next", "w") as file: file.write("%d %s %d" % (n, hashlib.sha256(held).hexdigest(), os.getpid()))
  os.rename("/tmp/next", "/tmp/count")
  if os.path.exists("/tmp/draw"):
    with open("/tmp/drawn", "w") as file: file.write(os.urandom(32).hex())
    os.remove("/tmp/draw")
  time.sleep(0.02)
`;

function sandboxesOf(forked: readonly (Sandbox | Error)[]): readonly Sandbox[] {
  for (const one of forked) if (one instanceof Error) throw one;
  return forked.filter((one) => one instanceof Sandbox);
}

async function drawn(sandbox: Sandbox): Promise<string> {
  await sandbox.files.write("/tmp/draw", "");
  await until("the draw", async () => !(await sandbox.files.exists("/tmp/draw")));
  return sandbox.files.read("/tmp/drawn");
}

const output = async (sandbox: Sandbox, command: string): Promise<string> =>
  (await sandbox.commands.run(command)).stdout;

interface Driver {
  readonly name: string;
  readonly skip: string | false;
  readonly options: Partial<EmbeddedOptions>;
  readonly keepsMemory: boolean;
}

const drivers: readonly Driver[] = [
  { name: "namespaces", skip: needsRoot, options: { workers: 2 }, keepsMemory: false },
  {
    name: "namespaces with CRIU",
    skip: needsCriu,
    options: { memory: "criu", workers: 2 },
    keepsMemory: true,
  },
  { name: "gVisor", skip: needsRunsc, options: { substrate: "gvisor", workers: 2 }, keepsMemory: true },
];

for (const { name, skip, options, keepsMemory } of drivers) {
  describe(`snapshots and forks on ${name}`, { skip, timeout: 240_000 }, () => {
    const resourcesBefore = hostResources();
    const data = mkdtempSync(join(tmpdir(), "space-fork-"));
    let rig: EmbeddedRig;
    before(async () => {
      rig = await startRig({ ...options, data, limits: { collectTickMs: 500, purgeTickMs: 500 } });
    });
    after(async () => {
      await rig.end();
      rmSync(data, { recursive: true, force: true });
      assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
    });

    it("a snapshot of what goes on is listed, created from after its source is gone, and deleted once", async () => {
      const sandbox = await Sandbox.create(rig.client());
      await sandbox.files.write("/home/user/kept", "as it was");
      const { endAt } = await sandbox.getInfo();
      const snapshot = await sandbox.createSnapshot({ name: "mine" });
      assert.deepEqual(snapshot.names, [snapshot.snapshotId]);
      const { endAt: after, state } = await sandbox.getInfo();
      assert.deepEqual([after, state], [endAt, "running"]);
      await sandbox.files.write("/home/user/kept", "as it is since");
      assert.deepEqual(await sandbox.listSnapshots().nextItems(), [snapshot]);
      assert.deepEqual(await Sandbox.listSnapshots({ ...rig.client(), name: "nobody's" }).nextItems(), []);
      await sandbox.kill();
      const child = await Sandbox.create(snapshot.snapshotId, rig.client());
      assert.notEqual(child.sandboxId, sandbox.sandboxId);
      assert.equal(await child.files.read("/home/user/kept"), "as it was");
      assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId, rig.client()), true);
      assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId, rig.client()), false);
      await assert.rejects(Sandbox.create(snapshot.snapshotId, rig.client()), /404/);
      await child.pause();
      const resumed = await Sandbox.connect(child.sandboxId, rig.client());
      assert.equal(await resumed.files.read("/home/user/kept"), "as it was");
      await resumed.kill();
    });

    it("children go on from where their source stood, each on its own, and it goes on as well", async () => {
      const source = await Sandbox.create(rig.client());
      await source.files.write("/home/user/kept", "shared");
      await source.files.write("/tmp/counter.py", counter);
      const command = await source.commands.run("python3 /tmp/counter.py", { background: true });
      await until("the counter", () => source.files.exists("/tmp/count"));
      const before = await counted(source);
      const children = sandboxesOf(await source.fork({ count: 3, timeoutMs: 120_000 }));
      assert.equal(children.length, 3);
      const now = await counted(source);
      assert.equal(now.who, before.who, "the source's process is the same");
      await until("the source to go on", async () => (await counted(source)).n > now.n);
      const all = [source, ...children];
      assert.equal(new Set(all.map((one) => one.sandboxId)).size, 4);
      for (const child of children) {
        assert.equal(await child.files.read("/home/user/kept"), "shared");
        await child.files.write("/home/user/kept", child.sandboxId);
      }
      assert.equal(await source.files.read("/home/user/kept"), "shared");
      for (const child of children) assert.equal(await child.files.read("/home/user/kept"), child.sandboxId);
      const own = await Promise.all(all.map((one) => output(one, "head -c 32 /dev/urandom | sha256sum")));
      assert.equal(new Set(own).size, 4, "no two draw the same");
      const names = await Promise.all(all.map((one) => output(one, "echo $E2B_SANDBOX_ID")));
      assert.deepEqual(
        names.map((text) => text.trim()),
        all.map((one) => one.sandboxId),
      );
      if (keepsMemory) {
        for (const child of children) {
          const seen = await counted(child);
          assert.equal(seen.who, before.who, "the same process, with the same bytes in its memory");
          assert.ok(seen.n >= before.n);
          await until("the child to go on", async () => (await counted(child)).n > seen.n);
        }
        const draws = await Promise.all(all.map(drawn));
        assert.equal(new Set(draws).size, 4, "nor does a process that was running already");
        const [first, second] = children;
        assert.equal(await first?.commands.kill(command.pid), true);
        assert.equal((await second?.commands.list())?.length, 1, "what one ends is ended in no other");
      }
      for (const one of all) await one.kill();
    });

    it("R-22: what a client hears of its command and its terminal goes on over snapshots, each byte once and in order", async () => {
      const sandbox = await Sandbox.create(rig.client());
      const streams = await NumberedStreams.begin(sandbox, 400);
      await until("the first numbers", () => streams.counted.length > 20);
      for (let round = 0; round < 3; round += 1) {
        await streams.type(10);
        const seen = streams.counted.length;
        await sandbox.createSnapshot();
        await streams.type(10);
        await until("the command to be heard again", () => streams.counted.length > seen + 20);
        await until("the lines to come back", () => streams.isReturned);
        streams.check();
      }
      await assert.rejects(streams.command.wait(), { exitCode: 7 });
      assert.equal(streams.counted.length, 400);
      streams.check();
      await sandbox.kill();
    });

    it("R-5: ./space chain verifies a child's chain offline, down to the parent that its origin names", async () => {
      const source = await Sandbox.create(rig.client());
      const [child] = sandboxesOf(await source.fork({ timeoutMs: 120_000 }));
      assert.ok(child);
      await child.pause();
      await Sandbox.connect(child.sandboxId, rig.client());
      const verified = await runProgram(join(checkout, "space"), [
        ...["chain", "verify", child.sandboxId, "--json", "--data", data],
      ]);
      assert.equal(verified.code, 0, verified.stderr);
      assert.match(verified.stdout, /"kind": ?"fork"/);
      const taken = await fetch(`${rig.system.apiUrl}/sandboxes/${source.sandboxId}/snapshots`, {
        method: "POST",
        headers: { "x-api-key": rig.system.apiKey.reveal() },
      });
      const { space } = (await taken.json()) as { space: { digest: string; memory: string } }; // cast: our own API's answer
      assert.equal(space.memory, keepsMemory ? "in-snapshot" : "none", "what could not be kept is told");
      await source.kill();
      await Sandbox.kill(child.sandboxId, rig.client());
      const sealed = await runProgram(join(checkout, "space"), [
        ...["chain", "verify", "--snapshot", space.digest, "--json", "--data", data],
      ]);
      assert.equal(sealed.code, 0, `its history is in it, though its source is gone: ${sealed.stderr}`);
    });

    it("one that is paused or gone has none", async () => {
      const sandbox = await Sandbox.create(rig.client());
      await sandbox.pause();
      await assert.rejects(sandbox.createSnapshot(), /409/);
      await assert.rejects(
        sandbox.fork(),
        (error) => /409/.test(String(error)) && !(error instanceof RateLimitError),
      );
      await sandbox.kill();
      await assert.rejects(sandbox.createSnapshot(), { name: "SandboxNotFoundError" });
    });
  });
}
