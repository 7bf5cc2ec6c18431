// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, realpathSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { SpaceError } from "@space/model";
import { processStartTime } from "@space/platform-linux";
import { runRoot } from "./run-root.ts";

/** Where an installation keeps everything. Made with mode 0700; a second process on it is refused. */
export interface DataDirectory {
  readonly root: string;
  /** Control plane's database and keys. */
  readonly control: string;
  readonly tls: string;
  readonly objects: string;
  /** Sockets: a short path outside the data directory, because a socket's path has 107 characters at most. */
  readonly run: string;
  /** 0 to 61: keeps the user-id ranges of two installations on one machine apart. */
  readonly userIdBlock: number;
  worker(index: number): { readonly root: string; readonly run: string };
  /** Gives the directory up. */
  release(): void;
}

/** Makes or opens the directory and holds it. Throws `data/in-use` with the holder's pid. */
export function openDataDirectory(path: string): DataDirectory {
  const wanted = resolve(path);
  mkdirSync(wanted, { recursive: true, mode: 0o700 });
  const root = realpathSync(wanted);
  const lock = join(root, "lock");
  hold(lock);
  const hash = hashOf(root);
  const run = runDirectory(root);
  const directory: DataDirectory = {
    root,
    control: join(root, "control"),
    tls: join(root, "tls"),
    objects: join(root, "objects"),
    run,
    userIdBlock: hash.readUInt32BE(8) % 62,
    worker: (index) => ({ root: join(root, "workers", String(index)), run: join(run, `w${index}`) }),
    release: () => giveUp(lock, run),
  };
  for (const folder of [directory.control, directory.tls, directory.objects]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  mkdirSync(run, { recursive: true, mode: 0o755 });
  return directory;
}

/** Where the sockets of the installation in this (real) directory are. */
export function runDirectory(root: string): string {
  return join(runRoot(), hashOf(root).toString("hex", 0, 6));
}

function hashOf(root: string): Buffer {
  return createHash("sha256").update(root).digest();
}

/**
 * Takes the lock by linking a complete file into place: it is never seen half-written. The holder is named by pid and
 * start time, so that a reused pid is not taken for it (incident 23).
 */
function hold(lock: string): void {
  const mine = `${lock}.${process.pid}`;
  writeFileSync(mine, ownLine(), { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (linked(mine, lock)) return;
      const [pid, startTime = ""] = readFileSync(lock, "utf8").trim().split(" ");
      // Without a start time nobody holds it: a power cut can leave the file empty.
      if (processStartTime(Number(pid)) === startTime)
        throw new SpaceError("data/in-use", { pid: Number(pid) });
      rmSync(lock, { force: true }); // its holder is gone
    }
    throw new SpaceError("data/in-use", { pid: 0 });
  } finally {
    rmSync(mine, { force: true });
  }
}

function ownLine(): string {
  return `${process.pid} ${processStartTime(process.pid)}\n`;
}

/** Only what is this process's own: the database may have been held by somebody who took the same stale lock. */
function giveUp(lock: string, run: string): void {
  try {
    rmdirSync(run);
  } catch {
    // sockets of what still runs, or removed already
  }
  try {
    if (readFileSync(lock, "utf8") === ownLine()) rmSync(lock);
  } catch {
    // gone already
  }
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}
