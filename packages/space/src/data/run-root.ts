// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { lstatSync, mkdirSync, statfsSync } from "node:fs";

/** File systems that live in memory, by their number in <linux/magic.h>. */
const inMemory: ReadonlySet<number> = new Set([0x0102_1994, 0x8584_58f6]); // tmpfs, ramfs
const writableByOthers = 0o022;

let chosen: string | undefined;

/**
 * Where sockets are, the same for every process of this user and boot: `/run/space`, or `/dev/shm/space` where `/run` lies
 * on a disk (in containers, often). A guest's start makes a socket and its end removes it, and on a disk that is the
 * dearest step of all. Everybody may write to `/dev/shm`: a folder of that name that is not this user's alone is not used.
 */
export function runRoot(): string {
  chosen ??=
    !isInMemory("/run") && isInMemory("/dev/shm") && isOwn("/dev/shm/space")
      ? "/dev/shm/space"
      : "/run/space";
  return chosen;
}

function isInMemory(path: string): boolean {
  try {
    return inMemory.has(statfsSync(path).type);
  } catch {
    return false; // there is no such folder
  }
}

/** Makes the folder where there is none. A symbolic link is nobody's folder. */
function isOwn(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o755 });
  } catch {
    // it exists: whose it is decides
  }
  try {
    const found = lstatSync(path);
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & writableByOthers) === 0;
  } catch {
    return false;
  }
}
