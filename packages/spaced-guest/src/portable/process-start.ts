// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { accessSync, closeSync, constants, fchownSync, statSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { type PayloadReader, ProtocolError } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { openPipe } from "./descriptors.ts";
import { portableDifferences } from "./differences.ts";
import { during, errnoOf } from "./libc.ts";
import { ownChildren } from "./orphans.ts";
import { takeText } from "./peer-connection.ts";
import { asUser, type UserIdentity } from "./privileges.ts";

const maxGroups = 64;
const maxStrings = 65_536;
const defaultPath = "/usr/local/bin:/usr/bin:/bin";
const errnoMissing = 2;
const errnoNotFolder = 20;
const errnoInvalid = 22;
const errnoUnknownCall = 38;

export interface SpawnOrder {
  readonly stdin: boolean;
  readonly pty: boolean;
  readonly identity: UserIdentity;
  readonly cwd: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ProcessOutput {
  readonly socket: Socket;
  readonly fd: number;
}

export interface StartedChild {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly stdin: Socket | undefined;
  readonly outputs: readonly [ProcessOutput, ProcessOutput];
}

export function decodeSpawn(payload: PayloadReader): SpawnOrder {
  const flags = payload.u32();
  const uid = payload.u32();
  const gid = payload.u32();
  const count = payload.u32();
  if (count > maxGroups) throw new GuestError(errnoInvalid, "request");
  const groups = Array.from({ length: count }, () => payload.u32());
  const cwd = takeText(payload);
  const argv = takeTexts(payload);
  const env: Record<string, string> = {};
  for (const pair of takeTexts(payload)) {
    const at = pair.indexOf("=");
    if (at >= 0) env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  if (argv.length === 0) throw new GuestError(errnoInvalid, "request");
  return { stdin: (flags & 1) !== 0, pty: (flags & 2) !== 0, identity: { uid, gid, groups }, cwd, argv, env };
}

function takeTexts(payload: PayloadReader): string[] {
  const count = payload.u32();
  if (count > maxStrings) throw new ProtocolError("too many strings");
  return Array.from({ length: count }, () => takeText(payload));
}

/**
 * Starts a process in its own session with pipes that belong to it, so that it can open them again through /dev/stdout.
 * Rejects with `GuestError`: an exec that fails is told here, not by the process's exit.
 */
export async function startProcess(order: SpawnOrder): Promise<StartedChild> {
  if (order.pty) throw new GuestError(errnoUnknownCall, "pty");
  const input = order.stdin ? openPipe() : undefined;
  const outputs = [openPipe(), openPipe()] as const;
  const theirs = [...(input === undefined ? [] : [input.reader]), ...outputs.map(({ writer }) => writer)];
  const ours = [...(input === undefined ? [] : [input.writer]), ...outputs.map(({ reader }) => reader)];
  try {
    const { uid, gid } = order.identity;
    for (const fd of theirs) during("stdio", () => fchownSync(fd, uid, gid));
    const stdio: StdioOptions = [input?.reader ?? "ignore", outputs[0].writer, outputs[1].writer];
    const { child, pid } = await spawnAs(order, stdio);
    const [out, err] = outputs.map(({ reader: fd }) => ({
      fd,
      socket: new Socket({ fd, readable: true, writable: false }),
    }));
    if (out === undefined || err === undefined) throw new TypeError("two outputs were opened");
    const stdin = input && new Socket({ fd: input.writer, readable: false, writable: true });
    return { child, pid, stdin, outputs: [out, err] };
  } catch (error) {
    for (const fd of ours) closeSync(fd);
    throw error;
  } finally {
    for (const fd of theirs) closeSync(fd);
  }
}

async function spawnAs(
  order: SpawnOrder,
  stdio: StdioOptions,
): Promise<{ readonly child: ChildProcess; readonly pid: number }> {
  const { identity, argv, env } = order;
  const [name = "", ...args] = argv;
  if (name === "") throw new GuestError(errnoMissing, "exec");
  // Everything in here, the spawn included, is done with the user's rights. `exec` starts in the folder already.
  const child = asFirstToBeKilled(() =>
    asUser(identity, () => {
      enterable(order.cwd);
      const options = { cwd: order.cwd, env: { ...env }, argv0: name, detached: true, stdio };
      return during("exec", () => spawn(find(name, env), args, options));
    }),
  );
  const { pid } = child;
  if (pid === undefined) {
    throw await new Promise<GuestError>((resolve) => {
      child.once("error", (error) => resolve(new GuestError(errnoOf(error), "exec")));
    });
  }
  ownChildren.add(pid);
  child.once("exit", () => ownChildren.delete(pid));
  return { child, pid };
}

/** What is started inherits it; pid 1 itself, a Node process larger than most, must not be the kernel's first choice. */
function asFirstToBeKilled<T>(work: () => T): T {
  during("memory", () =>
    writeFileSync("/proc/self/oom_score_adj", String(portableDifferences.oomScoreAdjustment)),
  );
  try {
    return work();
  } finally {
    during("memory", () => writeFileSync("/proc/self/oom_score_adj", "0"));
  }
}

function enterable(cwd: string): void {
  during("chdir", () => {
    if (!statSync(cwd).isDirectory()) throw new GuestError(errnoNotFolder, "chdir");
    accessSync(cwd, constants.X_OK);
  });
}

/** Only without a PATH of its own: otherwise the exec looks it up. */
function find(name: string, env: Readonly<Record<string, string>>): string {
  if (name.includes("/") || env["PATH"] !== undefined) return name;
  for (const folder of defaultPath.split(":")) {
    try {
      accessSync(`${folder}/${name}`, constants.X_OK);
      return `${folder}/${name}`;
    } catch {
      // the next one may have it
    }
  }
  throw new GuestError(errnoMissing, "exec");
}
