// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, closeSync, rmSync, statSync } from "node:fs";
import { constants } from "node:os";
import { Duplex } from "node:stream";
import { encodeFrame, FrameParser, PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import type { HostRecord, StartRecord } from "../launch-protocol.ts";
import { ControlFrame, encodeGuestOrders } from "./control-channel.ts";
import { bindUnixSocket } from "./descriptors.ts";
import { during } from "./libc.ts";
import { asFirstProcess, openUserNamespace, startTimeOf } from "./namespaces.ts";
import { findProgram, toolPath } from "./program.ts";

const readyLimitMs = 30_000;
const cgroupRefused = 71;
const signals: Readonly<Record<string, number | undefined>> = constants.signals;
// Enters the control groups before anything else; then whatever follows the "--".
const enterGroups = `while [ "$1" != -- ]; do echo 0 >"$1" || exit ${cgroupRefused}; shift; done; shift; exec "$@"`;

/** A process that the launcher has started and will reap. */
export interface Launched {
  readonly pid: number;
  readonly startTime: bigint;
  readonly child: ChildProcess;
  /** Resolves when it listens (a guest) or has become its program (a bridge). Rejects with `GuestError`. */
  readonly ready: Promise<void>;
  /** Its wait(2) status, when it has been reaped. */
  readonly exited: Promise<number>;
}

/** `payload` is the request as it came; the record says the same. */
export interface GuestStart {
  readonly payload: Buffer;
  readonly record: StartRecord;
  readonly filter: Buffer;
  /** The first stage. */
  readonly startProgram: string;
}

export async function launchGuest({ payload, record, filter, startProgram }: GuestStart): Promise<Launched> {
  const userNamespace = await openUserNamespace(record.uidBase);
  let listener: number | undefined;
  try {
    listener = bindFor(record);
    const unshare = ["--mount", "--net", "--ipc", "--uts", "--cgroup", "--propagation", "private", "--"];
    const stage = [
      findProgram("unshare", toolPath),
      ...unshare,
      process.execPath,
      "--disable-sigusr1",
      startProgram,
      "guest",
    ];
    const command = ["/bin/sh", "-c", enterGroups, "sh", ...record.cgroupFiles, "--", ...stage];
    const descriptors = ["pipe", listener, userNamespace] as const;
    const child = asFirstProcess(() => start(command, descriptors));
    const orders = encodeGuestOrders({
      activationId: record.activationId,
      secret: Buffer.from(record.secret),
      fileLimitBytes: record.fileLimitBytes,
      filter,
    });
    return follow(child, Buffer.concat([encodeFrame(ControlFrame.record, payload), orders]));
  } catch (error) {
    if (listener !== undefined) rmSync(record.socketPath, { force: true });
    throw error;
  } finally {
    closeSync(userNamespace);
    if (listener !== undefined) closeSync(listener);
  }
}

/** Bound in the host's network namespace: the host finds it in its table of sockets, and the guest does not. */
function bindFor({ socketPath, socketUid }: StartRecord): number {
  const before = process.umask(0o177);
  try {
    const fd = bindUnixSocket(socketPath);
    during("socket", () => chownSync(socketPath, socketUid, statSync(socketPath).gid));
    return fd;
  } finally {
    process.umask(before);
  }
}

export function launchBridge(payload: Buffer, record: HostRecord, startProgram: string): Launched {
  const mounts = record.binds.length > 0 ? ["--mount", "--propagation", "private"] : [];
  const unshare = [findProgram("unshare", toolPath), "--net", "--ipc", ...mounts, "--"];
  const child = start([...unshare, process.execPath, "--disable-sigusr1", startProgram, "bridge"], ["pipe"]);
  return follow(child, encodeFrame(ControlFrame.record, payload));
}

type Descriptors = readonly ["pipe", ...number[]];

function start([program = "", ...args]: readonly string[], descriptors: Descriptors): ChildProcess {
  return spawn(program, args, {
    cwd: "/",
    env: { PATH: toolPath },
    detached: true,
    stdio: ["ignore", "ignore", "inherit", ...descriptors],
  });
}

function follow(child: ChildProcess, orders: Buffer): Launched {
  const { pid } = child;
  child.on("error", () => undefined); // told by the exit, or by the missing pid
  if (pid === undefined) throw new GuestError(2, "fork");
  const exited = new Promise<number>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve(signal === null ? (code ?? 0) << 8 : (signals[signal] ?? 0)),
    );
  });
  return { pid, startTime: startTimeOf(pid), child, exited, ready: untilReady(child, orders, exited) };
}

/**
 * A guest says that it is ready; a bridge says that it is about to be and then falls silent, because the exec closes its
 * end. A failure may still follow the first word, so the end is awaited: both close the channel at once.
 */
function untilReady(child: ChildProcess, orders: Buffer, exited: Promise<number>): Promise<void> {
  const channel = child.stdio[3];
  if (!(channel instanceof Duplex)) throw new TypeError("the control channel is a stream");
  return new Promise((resolve, reject) => {
    let ready = false;
    const limit = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new GuestError(110, "ready"));
    }, readyLimitMs);
    const parser = new FrameParser((type, payload) => {
      const reader = new PayloadReader(payload);
      if (type === ControlFrame.ready) ready = true;
      else reject(new GuestError(reader.u32(), reader.string()));
    });
    channel.on("data", (chunk: Buffer) => parser.push(chunk));
    channel.on("error", () => undefined); // its end says the same
    channel.once("close", () => {
      clearTimeout(limit);
      if (ready) resolve();
      else void exited.then((status) => reject(diedEarly(status)));
    });
    channel.once("end", () => channel.destroy());
    channel.write(orders);
  });
}

function diedEarly(status: number): GuestError {
  if (status >> 8 === cgroupRefused) return new GuestError(5, "cgroup");
  // The launcher's own log is the only place where more can be said.
  process.stderr.write(`portable launcher: a start ended with wait status ${status} before it was ready\n`);
  return new GuestError(10, "died");
}
