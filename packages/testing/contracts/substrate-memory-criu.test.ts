// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { type ExecutionExit, isSpaceError, type SpaceError } from "@space/model";
import { listeningInode } from "@space/platform-linux";
import { faultLanded } from "../src/fault-landed.ts";
import { asUser, eventually, GuestHost, type TestGuest, WatchedProcess } from "../src/guest-host.ts";
import { needsCriu } from "../src/needs-criu.ts";
import { needsRoot } from "../src/needs-root.ts";
import { freezeForSnapshot, fromChunks, save } from "../src/saved-guest.ts";
import { memoryContract } from "./substrate-memory.ts";

memoryContract("criu", needsCriu);

/** Programs that cannot be saved, and what is said of each. */
const unsavable: readonly (readonly [what: string, program: string, problem: RegExp])[] = [
  [
    "a terminal that another program made",
    `import os, pty, time
if pty.fork()[0] == 0:
  held = open("/dev/tty")
time.sleep(100)`,
    /terminal that is not its own/,
  ],
  [
    "a process that another one traces",
    `import ctypes, os, signal, time
child = os.fork()
if child == 0:
  ctypes.CDLL(None).ptrace(0, 0, 0, 0)
  os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(child, os.WUNTRACED)
time.sleep(100)`,
    /traced by another/,
  ],
  [
    "a connection that nobody has accepted",
    `import socket, time
server = socket.create_server(("127.0.0.1", 8000))
client = socket.create_connection(("127.0.0.1", 8000))
time.sleep(100)`,
    /has not been accepted/,
  ],
  [
    "a removed file with another name",
    `import os, time
held = open("/tmp/one", "w")
os.link("/tmp/one", "/tmp/two")
os.unlink("/tmp/one")
time.sleep(100)`,
    /removed and has another name: \/tmp\/one/,
  ],
];

/** What keeps its state in places of its own: each prints a word when it is asked, by SIGUSR1, whether all is as it was. */
const savable: readonly (readonly [what: string, program: string])[] = [
  [
    "shared memory, semaphores and a removed file",
    `from multiprocessing import shared_memory, Semaphore
import mmap, os, tempfile
shm = shared_memory.SharedMemory(create=True, size=8192, name="kept")
shm.buf[:4] = b"here"
sem = Semaphore(3); sem.acquire()
gone = tempfile.TemporaryFile(dir="/tmp"); gone.write(b"unseen"); gone.flush()
mapped = mmap.mmap(-1, 4096); mapped[:2] = b"ok"
def whole():
  gone.seek(0)
  again = shared_memory.SharedMemory(name="kept")
  return bytes(again.buf[:4]) == b"here" and sem.get_value() == 2 and gone.read() == b"unseen" and mapped[:2] == b"ok"`,
  ],
  [
    "threads, pipes, a connection over the loopback, and a lock",
    `import fcntl, os, socket, subprocess, threading
server = socket.create_server(("127.0.0.1", 8001))
client = socket.create_connection(("127.0.0.1", 8001)); other, _ = server.accept()
one, two = socket.socketpair()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = open("/tmp/lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX)
asked, answered = threading.Event(), threading.Event()
def answer():
  while True: asked.wait(); asked.clear(); answered.set()
threading.Thread(target=answer, daemon=True).start()
def whole():
  client.sendall(b"a"); one.sendall(b"b")
  child.stdin.write(b"c\\n"); child.stdin.flush(); asked.set()
  taken = subprocess.run(["flock", "-n", "/tmp/lock", "true"]).returncode
  return other.recv(1) == b"a" and two.recv(1) == b"b" and child.stdout.readline() == b"c\\n" and answered.wait(5) and taken == 1`,
  ],
];
const asked = `
import signal, sys, time
def tell(*_):
  with open("/tmp/told", "w") as file: file.write("whole" if whole() else "broken")
signal.signal(signal.SIGUSR1, tell)
open("/tmp/ready", "w").close()
while True: signal.pause()
`;

describe("snapshots with memory by CRIU", { skip: needsCriu, timeout: 120_000 }, () => {
  let host: GuestHost;
  let other: GuestHost;
  before(async () => {
    host = await GuestHost.open("criu");
    other = await GuestHost.open("criu", { beside: true });
  });
  after(async () => {
    await other.close();
    await host.close();
  });

  async function run(guest: TestGuest, program: string): Promise<WatchedProcess> {
    return WatchedProcess.spawn(await guest.connect(), { ...asUser, argv: ["python3", "-c", program] });
  }

  async function refusal(guest: TestGuest): Promise<SpaceError<"snapshot/unsavable">> {
    try {
      await save(host, guest);
    } catch (error) {
      if (isSpaceError(error, "snapshot/unsavable")) return error;
      throw error;
    }
    throw new Error("it was saved");
  }

  for (const [what, program, problem] of unsavable) {
    it(`refuse ${what}, and say what to change; the sandbox runs on`, async () => {
      const guest = await host.start();
      await run(guest, program);
      await eventually("the program", async () => /S|t/.test(await guest.shell("ps -o stat= -C python3")));
      await new Promise((resolve) => setTimeout(resolve, 500));
      const { details } = await refusal(guest);
      assert.match(details.problem, problem);
      assert.notEqual(details.remedy, "");
      assert.equal(await host.substrate.thaw(guest.activationId), true);
      assert.equal(await guest.shell("pgrep -c python3 >/dev/null && echo on"), "on\n");
      assert.deepEqual(
        (await host.substrate.list()).map(({ evidence }) => evidence),
        [guest.evidence],
        "R-19: the same process, the same socket",
      );
      await host.substrate.stop(guest.activationId);
    });
  }

  for (const [what, program] of savable) {
    it(`keep ${what}`, async () => {
      const guest = await host.start();
      const watched = await run(guest, program + asked);
      await eventually(
        "the program",
        async () =>
          (await guest.run(["test", "-e", "/tmp/ready"])).exit.kind === "exited" &&
          (await guest.shell("test -e /tmp/ready && echo y || true")) === "y\n",
      );
      assert.equal(watched.output, "");
      const chunks = await save(host, guest);
      await host.substrate.stop(guest.activationId);
      const next = await other.start({}, fromChunks(chunks));
      await next.shell("pkill -USR1 -o python3");
      const told = (): Promise<string> => next.shell("cat /tmp/told 2>/dev/null || true");
      await eventually("an answer", async () => (await told()) !== "");
      assert.equal(await told(), "whole");
      await other.substrate.stop(next.activationId);
    });
  }

  it("say that a sandbox is lost when CRIU is killed at work, and leave nothing of it", async () => {
    const exits: ExecutionExit[] = [];
    host.substrate.onExit((exit) => exits.push(exit));
    const guest = await host.start();
    await run(guest, "held = bytearray(150 << 20)\nimport time\ntime.sleep(100)");
    await eventually("its memory", async () => Number(await guest.shell("ps -o rss= -C python3")) > 100_000);
    await freezeForSnapshot(host, guest);
    const saved = host.substrate.snapshot(guest.activationId)[Symbol.asyncIterator]().next();
    const saving = assert.rejects(saved, (error) => isSpaceError(error, "snapshot/fatal"));
    let dump: number | undefined;
    await eventually("the dump", async () => {
      const listed = await host.substrate.launchClient.list();
      dump = listed.find(({ name, running }) => running && name.startsWith("dump-"))?.hostPid;
      return dump !== undefined;
    });
    process.kill(dump ?? 0, "SIGKILL");
    faultLanded("CRIU was killed while it saved", 1);
    await saving;
    await eventually("the exit", () => exits.some(({ activationId }) => activationId === guest.activationId));
    await host.substrate.stop(guest.activationId);
    assert.deepEqual(await host.substrate.list(), []);
    assert.deepEqual(readdirSync(`${host.folder}/state/images`), []);
  });

  it("R-19: leave no socket behind on which a stranger could be taken for the guest", async () => {
    const guest = await host.start();
    await freezeForSnapshot(host, guest);
    assert.notEqual(listeningInode(guest.evidence.socketPath), undefined);
    await host.substrate.stop(guest.activationId);
    assert.equal(listeningInode(guest.evidence.socketPath), undefined);
  });
});

describe("a worker without CRIU", { skip: needsRoot || needsCriu, timeout: 120_000 }, () => {
  it("refuses a snapshot with memory, and leaves nothing; one with CRIU takes a layer alone", async () => {
    const saving = await GuestHost.open("criu");
    const guest = await saving.start();
    const chunks = await save(saving, guest);
    await saving.substrate.stop(guest.activationId);
    const plain = await GuestHost.open("native", { beside: true });
    await assert.rejects(
      plain.start({}, fromChunks(chunks)),
      (error) => isSpaceError(error, "snapshot/refused") && /no CRIU/.test(error.details.problem),
    );
    assert.equal(await plain.substrate.sweep(new Set()), 0);
    const layered = await plain.start();
    await layered.shell("echo kept > /tmp/mine");
    assert.equal(await plain.substrate.freeze(layered.activationId, "snapshot"), true);
    const layer: Uint8Array[] = [];
    for await (const chunk of plain.substrate.snapshot(layered.activationId)) layer.push(chunk);
    const next = await saving.start({}, fromChunks(layer));
    assert.equal(await next.shell("cat /tmp/mine"), "kept\n");
    await plain.close();
    await saving.close();
  });
});
