// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A program for a pid namespace of its own (`unshare --pid --fork --mount-proc`), where it may say which pid comes next:
// `node reused-pid-main.ts SOCKET`. It records a process, lets it end, gives its very pid to strangers, and prints what
// the checks of R-19 and the signals of the manager make of them.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { isSpaceError } from "@space/model";
import {
  checkEndpoint,
  type EndpointVerdict,
  HeldProcess,
  kernelReader,
  processEvidence,
  processStartTime,
  signalProcess,
} from "@space/platform-linux";

export interface ReusedPidReport {
  /** Of the recorded process, while it lived. */
  readonly before: EndpointVerdict;
  /** Strangers that got its pid, at another moment of the boot. */
  readonly strangers: number;
  /** Whom the kernel names on the connection to the process that has ended. */
  readonly peerPid: number;
  readonly pid: number;
  readonly signalled: boolean;
  readonly strangerLives: boolean;
  readonly heldIsStranger: boolean;
  readonly holding: string;
  readonly strangerHasOwnEvidence: boolean;
  readonly oldConnection: EndpointVerdict;
  /** The same on a kernel that cannot say whether the peer has ended. */
  readonly oldConnectionByPidAlone: EndpointVerdict;
  /** To a stranger of the same pid, program and user that listens at the same path. */
  readonly newConnection: EndpointVerdict;
}

const tries = 100;

if (import.meta.main) {
  const [socketPath = ""] = process.argv.slice(2);
  process.stdout.write(`${JSON.stringify(await reusePid(socketPath))}\n`);
  process.exit(0);
}

async function reusePid(socketPath: string): Promise<ReusedPidReport> {
  const victim = await listening(spawnListener(socketPath));
  const pid = victim.pid ?? 0;
  const recorded = { process: processEvidence(pid), socketPath };
  const held = HeldProcess.hold(pid, recorded.process.startTime);
  const socket = await dial(socketPath);
  const before = checkEndpoint(socket, recorded);
  await end(victim);

  const { startTime } = recorded.process;
  const sleeper = await withPid(pid, startTime, () => spawn("sleep", ["600"], { stdio: "ignore" }));
  const report = {
    before,
    pid,
    peerPid: kernelReader.peerCredentials(socket).pid,
    signalled: signalProcess(recorded.process, 9),
    heldIsStranger: held.is(pid, startTime) || held.alive,
    holding: codeOf(() => HeldProcess.hold(pid, startTime)),
    strangerHasOwnEvidence: processEvidence(pid).startTime !== startTime,
    oldConnection: checkEndpoint(socket, recorded),
    oldConnectionByPidAlone: checkEndpoint(socket, recorded, {
      ...kernelReader,
      peerProcess: () => "unsupported",
      ownsListener: () => true,
    }),
    strangerLives: sleeper.exitCode === null && processStartTime(pid) !== undefined,
  };
  await end(sleeper);

  const impostor = await withPid(pid, startTime, () => spawnListener(socketPath));
  await listening(impostor);
  const newConnection = checkEndpoint(await dial(socketPath), recorded);
  const strangers = [sleeper, impostor].filter((stranger) => stranger.pid === pid).length;
  await end(impostor);
  held.release();
  return { ...report, newConnection, strangers };
}

/** Starts processes until one has this pid and began at another moment than that. */
async function withPid(pid: number, startTime: string, begin: () => ChildProcess): Promise<ChildProcess> {
  for (let turn = 0; turn < tries; turn += 1) {
    writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
    const child = begin();
    if (child.pid === pid && processStartTime(pid) !== startTime) return child;
    await end(child);
  }
  throw new TypeError("no process got the pid");
}

/** A process that listens at the path, whoever listened there before. */
function spawnListener(path: string): ChildProcess {
  const program = `const path = ${JSON.stringify(path)}; require("node:fs").rmSync(path, { force: true });
    require("node:net").createServer((s) => s.on("error", () => {}).write("x")).listen(path, () => console.log("up"));`;
  return spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
}

async function listening(child: ChildProcess): Promise<ChildProcess> {
  if (child.stdout === null) throw new TypeError("it has no output");
  await once(child.stdout, "data");
  return child;
}

/** A connection that has been accepted, and stays open when its peer ends. */
async function dial(path: string): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: true });
  socket.on("error", () => undefined);
  await once(socket, "data");
  socket.pause();
  return socket;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

function codeOf(action: () => unknown): string {
  try {
    action();
    return "none";
  } catch (error) {
    return isSpaceError(error) ? error.code : String(error);
  }
}
