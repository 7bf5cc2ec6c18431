// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isSpaceError, SpaceError } from "@space/model";
import {
  checkEndpoint,
  type EndpointReader,
  HeldProcess,
  kernelReader,
  requireEndpoint,
} from "./endpoint-check.ts";
import { processEvidence, processStartTime } from "./process-evidence.ts";
import { peerCredentials } from "./unix-peer.ts";

let folder: string;
const children: ChildProcess[] = [];
before(() => {
  folder = mkdtempSync(join(tmpdir(), "endpoint-"));
});
after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A process that listens at the path, whoever listened there before, and says when it does. */
async function listenAt(path: string): Promise<{ child: ChildProcess; pid: number }> {
  const program = `const path = ${JSON.stringify(path)}; require("node:fs").rmSync(path, { force: true });
    require("node:net").createServer((s) => s.on("error", () => {}).write("x")).listen(path, () => console.log("up"));`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  assert.ok(child.stdout);
  await once(child.stdout, "data");
  return { child, pid: child.pid ?? 0 };
}

async function dial(path: string): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: true }); // its descriptor outlives the peer
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

test("R-19: the recorded process behind its own socket is verified, and so is every new connection", async () => {
  const socketPath = join(folder, "own");
  const { pid } = await listenAt(socketPath);
  const recorded = { process: processEvidence(pid), socketPath };
  for (let round = 0; round < 3; round += 1) {
    const socket = await dial(socketPath);
    assert.deepEqual(checkEndpoint(socket, recorded), { kind: "verified" });
    requireEndpoint("it", checkEndpoint(socket, recorded));
    socket.destroy();
  }
});

test("R-19, R-20: an impostor that binds the path again is refused, on the very next connection", async () => {
  const socketPath = join(folder, "rebound");
  const { pid } = await listenAt(socketPath);
  const recorded = { process: processEvidence(pid), socketPath };
  const first = await dial(socketPath);
  assert.equal(checkEndpoint(first, recorded).kind, "verified");
  const impostor = await listenAt(socketPath);
  const socket = await dial(socketPath);
  assert.equal(peerCredentials(socket).pid, impostor.pid, "the fault has landed");
  assert.notEqual(processStartTime(pid), undefined, "and the recorded process still runs");
  const verdict = checkEndpoint(socket, recorded);
  assert.deepEqual(verdict, { kind: "mismatch", problem: "another pid" });
  assert.throws(
    () => requireEndpoint("bridge", verdict),
    (error) => isSpaceError(error, "endpoint/mismatch") && error.details.problem === "bridge: another pid",
  );
  // The connection that was verified is the recorded process's still; but the path is not its own any more.
  assert.deepEqual(checkEndpoint(first, recorded), {
    kind: "mismatch",
    problem: "the socket is not its own",
  });
  first.destroy();
  socket.destroy();
});

test("R-19: a peer that has died is refused, although the kernel still reports its pid", async () => {
  const socketPath = join(folder, "dead");
  const { child, pid } = await listenAt(socketPath);
  const recorded = { process: processEvidence(pid), socketPath };
  const socket = await dial(socketPath);
  await once(socket, "data"); // it has been accepted, so that its end is no reset
  socket.pause();
  child.kill("SIGKILL");
  await once(child, "exit");
  const verdict = (() => {
    try {
      assert.equal(
        kernelReader.peerCredentials(socket).pid,
        pid,
        "the fault has landed: the pid alone tells nothing",
      );
      return checkEndpoint(socket, recorded);
    } finally {
      socket.destroy();
    }
  })();
  assert.notEqual(verdict.kind, "verified");
});

test("R-19: a process that executes another program is refused, with the same pid and start time", async () => {
  const child = spawn("sh", ["-c", "read line; exec sleep 600"], { stdio: ["pipe", "ignore", "inherit"] });
  children.push(child);
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const before = processEvidence(pid);
  const reader = { ...asRecorded(pid), processEvidence };
  const recorded = { process: before, socketPath: "/run/it" };
  const socket = {} as Socket; // cast: the reader does not look at it
  assert.deepEqual(checkEndpoint(socket, recorded, reader), { kind: "verified" });
  child.stdin?.end("\n");
  for (let turn = 0; processEvidence(pid).executable.inode === before.executable.inode; turn += 1) {
    assert.ok(turn < 100_000, "it never executed the other program");
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(
    processEvidence(pid).startTime,
    before.startTime,
    "the fault has landed: it is the same process",
  );
  assert.deepEqual(checkEndpoint(socket, recorded, reader), {
    kind: "mismatch",
    problem: "another executable",
  });
});

/** A kernel in whose words this pid is behind every socket, alive, and owns it. */
function asRecorded(pid: number): EndpointReader {
  const evidence = processEvidence(process.pid);
  return {
    peerCredentials: () => ({ pid, uid: 0, gid: 0 }),
    peerProcess: () => pid,
    processEvidence: () => ({ ...evidence, pid }),
    ownsListener: () => true,
  };
}

test("incident 23, R-19: each single fact that is not the record's refuses, and each that cannot be read is unverifiable", () => {
  const good = asRecorded(7);
  const process = good.processEvidence(7);
  const recorded = { process, socketPath: "/run/it" };
  const socket = {} as Socket; // cast: the reader does not look at it
  const verdict = (changes: Partial<EndpointReader>) =>
    checkEndpoint(socket, recorded, { ...good, ...changes });
  assert.deepEqual(verdict({}), { kind: "verified" });
  assert.deepEqual(verdict({ peerProcess: () => "unsupported" }), { kind: "verified" });
  const mismatches: [Partial<EndpointReader>, string][] = [
    [{ peerCredentials: () => ({ pid: 8, uid: 0, gid: 0 }) }, "another pid"],
    [{ peerProcess: () => "ended" }, "the peer has ended"],
    [{ peerProcess: () => 8 }, "another pid"],
    [{ processEvidence: () => ({ ...process, startTime: "1" }) }, "the pid was used again"],
    [
      { processEvidence: () => ({ ...process, executable: { device: "1", inode: "1" } }) },
      "another executable",
    ],
    [{ processEvidence: () => ({ ...process, uid: process.uid + 1 }) }, "another user id"],
    [{ ownsListener: () => false }, "the socket is not its own"],
  ];
  for (const [changes, problem] of mismatches)
    assert.deepEqual(verdict(changes), { kind: "mismatch", problem });
  const typed = (): never => {
    throw new SpaceError("endpoint/unverifiable", { problem: "no word" });
  };
  const untyped = (): never => {
    throw new RangeError("EACCES");
  };
  for (const name of ["peerCredentials", "peerProcess", "processEvidence", "ownsListener"] as const) {
    assert.deepEqual(verdict({ [name]: typed }), { kind: "unverifiable", problem: "no word" });
    assert.equal(verdict({ [name]: untyped }).kind, "unverifiable");
  }
  assert.throws(
    () => requireEndpoint("it", verdict({ ownsListener: untyped })),
    (error) => isSpaceError(error, "endpoint/unverifiable"),
  );
});

test("incident 23, R-19: a held process is that one for ever, and no other of its pid", async () => {
  const child = spawn("sleep", ["600"]);
  children.push(child);
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const startTime = processStartTime(pid) ?? "";
  assert.throws(
    () => HeldProcess.hold(pid, "1"),
    (error) => isSpaceError(error, "endpoint/mismatch"),
  );
  const held = HeldProcess.hold(pid, startTime);
  assert.ok(held.is(pid, startTime));
  assert.ok(!held.is(pid, "1") && !held.is(1, startTime));
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok(!held.alive && !held.is(pid, startTime));
  held.release();
  held.release();
  assert.throws(
    () => HeldProcess.hold(pid, startTime),
    (error) => isSpaceError(error, "endpoint/unverifiable"),
  );
});
