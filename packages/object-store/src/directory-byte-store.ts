// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomUUID } from "node:crypto";
import type { Dirent, Stats } from "node:fs";
import { mkdir, open, readdir, rename, rm, rmdir, stat, statfs, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type ByteStore,
  isObjectKey,
  requireKeyPrefix,
  requireObjectKey,
  SpaceError,
  type StoredBytes,
} from "@space/model";
import { syncFolder } from "@space/platform-linux/durable-file";
import { attempt as attemptStep } from "./attempt.ts";
import { SharedSyncs } from "./shared-syncs.ts";

/** A temporary file that is older belongs to a process that is gone. */
const abandonedAfterMs = 60 * 60 * 1000;
const incomingFolder = "incoming";
/** How often a folder may be removed, as empty, between its making and its first use. */
const folderTries = 5;
/** Left on the disk by default, so that a snapshot that finds no room can still be called off: that is written, too. */
const defaultKeptFreeBytes = 64 * 1024 * 1024;

export interface DirectoryByteStoreOptions {
  /** Nothing is written that would leave less of the disk. Default 64 MiB. */
  readonly keptFreeBytes?: number;
}

/**
 * Objects as files in a directory. Several processes may share one. A file appears under its key only when it is whole
 * and synced, so a crash leaves at most a temporary file. A full disk is `store/full`.
 */
export class DirectoryByteStore implements ByteStore {
  readonly #root: string;
  readonly #keptFreeBytes: number;
  readonly #names = new SharedSyncs(syncNames);

  private constructor(root: string, keptFreeBytes: number) {
    this.#root = root;
    this.#keptFreeBytes = keptFreeBytes;
  }

  /** Makes the directory where it is missing (readable by its owner alone) and removes what crashes left. Throws `store/failed`. */
  static async open(root: string, options: DirectoryByteStoreOptions = {}): Promise<DirectoryByteStore> {
    return attempt("open", async () => {
      await mkdir(join(root, incomingFolder), { recursive: true, mode: 0o700 });
      await removeAbandoned(join(root, incomingFolder), Date.now() - abandonedAfterMs);
      return new DirectoryByteStore(root, options.keptFreeBytes ?? defaultKeptFreeBytes);
    });
  }

  /** One that is there already, which nothing is written to by this. Throws `store/failed`. */
  static async existing(root: string): Promise<DirectoryByteStore> {
    return attempt("open", async () => {
      await readdir(root);
      return new DirectoryByteStore(root, defaultKeptFreeBytes);
    });
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const path = this.#path(key);
    const incoming = join(this.#root, incomingFolder, randomUUID());
    await attempt("put", async () => {
      const { bavail, bsize } = await statfs(this.#root);
      if (bavail * bsize < this.#keptFreeBytes + bytes.length) throw full();
      try {
        await writeSynced(incoming, bytes);
        await this.#rename(incoming, path);
        await this.#names.sync(dirname(path));
      } catch (error) {
        await rm(incoming, { force: true });
        throw error;
      }
    });
  }

  async get(key: string, limitBytes: number): Promise<Uint8Array | undefined> {
    const path = this.#path(key);
    return attempt("get", async () => {
      const file = await open(path, "r").catch(absentAsUndefined);
      if (file === undefined) return undefined;
      try {
        const { size } = await file.stat();
        if (size > limitBytes) throw new SpaceError("input/too-large", { what: "object", limitBytes });
        return await file.readFile();
      } finally {
        await file.close();
      }
    });
  }

  async has(key: string): Promise<boolean> {
    const path = this.#path(key);
    return attempt("stat", async () => (await stat(path).catch(absentAsUndefined))?.isFile() === true);
  }

  async move(from: string, to: string): Promise<boolean> {
    const [source, target] = [this.#path(from), this.#path(to)];
    return attempt("move", async () => {
      const now = new Date();
      if (!(await succeeds(utimes(source, now, now)))) return false;
      if (!(await this.#renameIfThere(source, target))) return false;
      // The new name first: a power cut between the two leaves both, never neither.
      await this.#names.sync(dirname(target));
      await this.#names.sync(dirname(source));
      return true;
    });
  }

  async remove(key: string): Promise<void> {
    const path = this.#path(key);
    await attempt("remove", async () => {
      await rm(path, { force: true });
      await this.#removeEmpty(dirname(path));
    });
  }

  async *list(prefix: string): AsyncIterable<StoredBytes> {
    requireKeyPrefix(prefix);
    const key = prefix.slice(0, -1);
    yield* this.#listFolder(join(this.#root, key), key);
  }

  async *#listFolder(folder: string, key: string): AsyncIterable<StoredBytes> {
    const entries: Dirent[] | undefined = await attempt("list", () =>
      readdir(folder, { withFileTypes: true }).catch(absentAsUndefined),
    );
    for (const entry of entries ?? []) {
      const [path, inside] = [join(folder, entry.name), `${key}/${entry.name}`];
      if (!isObjectKey(inside)) continue;
      if (entry.isDirectory()) yield* this.#listFolder(path, inside);
      const found: Stats | undefined = entry.isFile()
        ? await attempt("list", () => stat(path).catch(absentAsUndefined))
        : undefined;
      if (found !== undefined) yield { key: inside, sizeBytes: found.size, modifiedMs: found.mtimeMs };
    }
  }

  async #renameIfThere(source: string, target: string): Promise<boolean> {
    try {
      await this.#rename(source, target);
      return true;
    } catch (error) {
      if (isAbsence(error) && (await stat(source).catch(absentAsUndefined)) === undefined) return false;
      throw error;
    }
  }

  /** Makes the target's folder; another process may remove it again while it is empty. */
  async #rename(source: string, target: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#makeFolder(dirname(target));
        return await rename(source, target);
      } catch (error) {
        if (!isAbsence(error) || tries >= folderTries) throw error;
      }
    }
  }

  /** Every folder that is new is synced into the one above, up to the root. */
  async #makeFolder(folder: string): Promise<void> {
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    for (let made = folder; made.length >= first.length; made = dirname(made)) await syncNames(dirname(made));
  }

  async #removeEmpty(folder: string): Promise<void> {
    for (let empty = folder; empty.length > this.#root.length; empty = dirname(empty)) {
      if (!(await succeeds(rmdir(empty)))) return;
    }
  }

  #path(key: string): string {
    requireObjectKey(key);
    return join(this.#root, key);
  }
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** False where the file or folder is not there, or not empty. */
async function succeeds(action: Promise<void>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    if (isAbsence(error) || hasCode(error, "ENOTEMPTY") || hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

function absentAsUndefined(error: unknown): undefined {
  if (!isAbsence(error)) throw error;
}

function isAbsence(error: unknown): boolean {
  return hasCode(error, "ENOENT");
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** As for every store; where there is no room for bytes, or for names, or this user has had his share, that is said. */
function attempt<T>(step: string, action: () => Promise<T>): Promise<T> {
  return attemptStep(step, () =>
    action().catch((error: unknown) => {
      throw hasCode(error, "ENOSPC") || hasCode(error, "EDQUOT") ? full(error) : error;
    }),
  );
}

function full(cause?: unknown): SpaceError<"store/full"> {
  return new SpaceError("store/full", { what: "snapshots" }, { cause });
}

/** One that was removed since, as empty, has no name in it to be kept. */
async function syncNames(path: string): Promise<void> {
  await syncFolder(path).catch(absentAsUndefined);
}

async function removeAbandoned(folder: string, beforeMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(absentAsUndefined);
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { force: true });
  }
}
