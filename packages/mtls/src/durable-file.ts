// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";

import { SpaceError } from "@space/model";

const fileLimitBytes = 64 * 1024;

/**
 * Replaces a file in one step: after a crash it holds the old contents or the new ones, and once this has returned, the
 * new ones. It never exists with a wider mode than `mode`. Throws `store/failed`.
 */
export async function writeDurably(path: string, contents: string, mode: number): Promise<void> {
  const directory = dirname(path);
  const temporary = `${path}.${randomBytes(6).toString("hex")}.new`;
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeSynced(temporary, contents, mode);
    await rename(temporary, path);
    await syncDirectory(directory);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw new SpaceError("store/failed", { step: "write a certificate" }, { cause });
  }
}

async function writeSynced(path: string, contents: string, mode: number): Promise<void> {
  await using file = await open(path, "wx", mode);
  await file.writeFile(contents);
  await file.sync();
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

/**
 * Reads a file that holds a key; undefined when there is none. Throws `host/unfit` when others than its owner may read
 * or write it, and `store/failed`.
 */
export async function readPrivate(path: string): Promise<string | undefined> {
  try {
    const { mode, size } = await stat(path);
    if ((mode & 0o077) !== 0) {
      throw new SpaceError("host/unfit", {
        problem: `${path} holds a private key and is open to others`,
        remedy: `chmod 600 ${path}, and replace the key if somebody may have read it`,
      });
    }
    if (size > fileLimitBytes) throw new RangeError("larger than any certificate");
    return await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof SpaceError) throw cause;
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new SpaceError("store/failed", { step: "read a certificate" }, { cause });
  }
}
