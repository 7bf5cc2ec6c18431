// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import {
  asRoot,
  asUser,
  eventually,
  GuestHost,
  type GuestHostKind,
  type TestGuest,
  WatchedProcess,
} from "../src/guest-host.ts";
import { freezeForSnapshot, fromChunks, save } from "../src/saved-guest.ts";

/** Writes how far it has counted, the digest of 4 MB of random bytes that it holds, and who it is. */
const counter = `
import hashlib, os, time
held = os.urandom(4 << 20)
n = 0
while True:
  n += 1
  with open("/tmp/next", "w") as file: file.write("%d %s %d" % (n, hashlib.sha256(held).hexdigest(), os.getpid()))
  os.rename("/tmp/next", "/tmp/count")
  time.sleep(0.02)
`;
const server =
  "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000, bind='127.0.0.1')";
const fetched =
  "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').status)\"";

async function counted(guest: TestGuest): Promise<{ readonly n: number; readonly who: string }> {
  const [n = "", ...who] = (await guest.shell("cat /tmp/count 2>/dev/null || true")).split(" ");
  return { n: Number(n), who: who.join(" ") };
}

async function startCounting(guest: TestGuest): Promise<void> {
  await WatchedProcess.spawn(await guest.connect(), { ...asUser, argv: ["python3", "-c", counter] });
  await eventually("the counter", async () => (await counted(guest)).n > 5);
}

/** What a driver with `memorySnapshots` promises beside the rest of the port's contract. */
export function memoryContract(kind: GuestHostKind, skip: string | false): void {
  describe(`snapshots with memory, ${kind}`, { skip, timeout: 120_000 }, () => memoryCases(kind));
}

function memoryCases(kind: GuestHostKind): void {
  let host: GuestHost;
  let other: GuestHost;
  before(async () => {
    host = await GuestHost.open(kind);
    other = await GuestHost.open(kind, { beside: true });
  });
  after(async () => {
    await other.close();
    await host.close();
  });

  it("go on elsewhere: processes with their memory, a listening server, and files", async () => {
    const guest = await host.start();
    await startCounting(guest);
    await WatchedProcess.spawn(await guest.connect(), { ...asUser, argv: ["python3", "-c", server] });
    await guest.shell("echo kept > /etc/mine; rm /etc/issue; mkdir -p /opt/a; ln -s /usr /opt/a/b", asRoot);
    await eventually("the server", async () => (await guest.run(["sh", "-c", fetched])).stdout === "200\n");
    const before = await counted(guest);
    const chunks = await save(host, guest);
    await host.substrate.stop(guest.activationId);

    const next = await other.start({}, fromChunks(chunks));
    const seen = await counted(next);
    assert.equal(seen.who, before.who, "the same process, with the same bytes");
    assert.ok(seen.n >= before.n, `${seen.n} after ${before.n}`);
    await eventually("the counter to go on", async () => (await counted(next)).n > seen.n);
    assert.equal(await next.shell(fetched), "200\n");
    assert.equal(await next.shell("cat /etc/mine; test ! -e /etc/issue; readlink /opt/a/b"), "kept\n/usr\n");
    await other.substrate.stop(next.activationId);
  });

  it("R-20: give each clone its own identity and its own randomness, and a process that is forsaken goes on", async () => {
    const guest = await host.start();
    const chatter = "while :; do head -c 4096 /dev/zero; echo $$ > /tmp/alive; done";
    await WatchedProcess.spawn(await guest.connect(), { ...asUser, argv: ["sh", "-c", chatter] });
    await eventually("the process", async () => (await guest.shell("cat /tmp/alive || true")) !== "");
    const chunks = await save(host, guest);
    assert.equal(await host.substrate.thaw(guest.activationId), true);
    const clones = await Promise.all([
      host.start({}, fromChunks(chunks)),
      other.start({}, fromChunks(chunks)),
    ]);
    const all = [guest, ...clones];
    const random = "head -c 16 /dev/urandom | od -An -tx1";
    const drawn = await Promise.all(all.map((one) => one.shell(random)));
    assert.equal(new Set(drawn).size, 3);
    for (const clone of clones) {
      clone.credentials = guest.credentials; // the identity of the sandbox that it was cloned from is not its own
      await assert.rejects(clone.connect(), /./);
      clone.credentials = { activationId: clone.activationId, secret: clone.secret };
      await clone.using((connection) => connection.forsake()); // until then it waits for whoever attaches
      await clone.shell("rm /tmp/alive");
      await eventually("the process", async () => (await clone.run(["cat", "/tmp/alive"])).stdout !== "");
    }
    await clones[0]?.shell("echo mine > /tmp/mine");
    assert.equal(await clones[1]?.shell("test ! -e /tmp/mine && echo apart"), "apart\n");
    const clock = Number(await clones[1]?.shell("date +%s"));
    assert.ok(Math.abs(clock - Date.now() / 1000) < 5, "the clock is the host's");
    await Promise.all([
      host.substrate.stop(guest.activationId),
      host.substrate.stop(clones[0]?.activationId ?? guest.activationId),
      other.substrate.stop(clones[1]?.activationId ?? guest.activationId),
    ]);
  });

  it("R-22: a pause that is given up loses nothing: not a byte of a stream, nor a moment of memory", async () => {
    const guest = await host.start();
    await startCounting(guest);
    const watched = await WatchedProcess.spawn(await guest.connect(), {
      ...asUser,
      argv: ["cat"],
      stdin: true,
    });
    for (const round of [1, 2]) {
      watched.process?.writeStdin(Buffer.from(`before ${round}\n`));
      const { who, n } = await counted(guest);
      const { process, lost } = watched;
      assert.ok(process);
      await freezeForSnapshot(host, guest);
      await watched.until((now) => now.lost > lost);
      await host.restart(); // and the next daemon has to know how far it came
      for await (const chunk of host.substrate.snapshot(guest.activationId)) assert.ok(chunk.length > 0);
      const found = (await host.substrate.list()).map(({ evidence }) => evidence);
      assert.deepEqual(found, [guest.evidence], "R-19: the same processes, recognised");
      assert.equal(await host.substrate.thaw(guest.activationId), true);
      watched.process = await (await guest.connect()).attach(process);
      watched.process.writeStdin(Buffer.from(`after ${round}\n`));
      await watched.until(({ output }) => output.endsWith(`after ${round}\n`));
      await eventually("the counter", async () => (await counted(guest)).n > n);
      assert.equal((await counted(guest)).who, who);
    }
    assert.equal(watched.output, "before 1\nafter 1\nbefore 2\nafter 2\n");
    assert.deepEqual(
      (await host.substrate.list()).map(({ evidence }) => evidence),
      [guest.evidence],
    );
    await host.substrate.stop(guest.activationId);
  });

  it("are not begun while a connection is open: the sandbox runs on, and says why", async () => {
    const guest = await host.start();
    await startCounting(guest);
    await assert.rejects(
      host.substrate.freeze(guest.activationId, "snapshot"),
      (error) => isSpaceError(error, "substrate/failed") && error.details.step === "quiesce",
    );
    const { n } = await counted(guest);
    await eventually("the counter", async () => (await counted(guest)).n > n);
    assert.equal(await host.substrate.freeze(guest.activationId), true);
    await assert.rejects(
      host.substrate.snapshot(guest.activationId)[Symbol.asyncIterator]().next(),
      (error) => isSpaceError(error, "substrate/failed") && error.details.step === "stand still",
    );
    assert.equal(await host.substrate.thaw(guest.activationId), true);
    assert.equal(await guest.shell("echo alive"), "alive\n");
    await host.substrate.stop(guest.activationId);
  });

  it("are refused when they were altered so that they cannot be restored, and leave nothing", async () => {
    const guest = await host.start();
    const chunks = Buffer.concat(await save(host, guest));
    const altered = Buffer.from(chunks);
    altered.fill(0x5a, altered.indexOf("}]}") + 4096, altered.indexOf("}]}") + 300_000);
    await assert.rejects(other.start({}, fromChunks([altered])), (error) =>
      isSpaceError(error, "snapshot/refused"),
    );
    assert.equal(await other.substrate.sweep(new Set()), 0);
    // The sandbox that was saved is whole, and so is its snapshot.
    assert.equal(await host.substrate.thaw(guest.activationId), true);
    const good = await other.start({}, fromChunks([chunks]));
    assert.equal(await good.shell("echo whole"), "whole\n");
    await other.substrate.stop(good.activationId);
    await host.substrate.stop(guest.activationId);
  });
}
