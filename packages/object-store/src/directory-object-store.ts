// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash, randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { type Digest, isSpaceError, type ObjectStore, parseDigest, SpaceError } from "@space/model";
import { replaceFile, syncFolder } from "@space/platform-linux/durable-file";

/** Longest object. Archives come in chunks far below it. */
export const objectLimitBytes: number = 16 * 1024 * 1024;
/** What zstd may add to bytes that do not compress. */
const compressionSlackBytes = 128 * 1024;
/** A temporary file that is older belongs to a process that is gone. */
const abandonedAfterMs = 60 * 60 * 1000;

/** Left on the disk by default, so that a snapshot that finds no room can still be called off: that is written, too. */
const keptFreeBytes = 64 * 1024 * 1024;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export interface DirectoryObjectStoreOptions {
  /** No object is written that would leave less of the disk. Default 64 MiB. */
  readonly keptFreeBytes?: number;
}

/**
 * Objects as zstd files in a directory, named by the SHA-256 of their plain bytes. Several processes may share one
 * directory. A file appears under its name only when it is whole and synced, so a crash leaves at most a temporary file.
 */
export class DirectoryObjectStore implements ObjectStore {
  readonly #root: string;
  readonly #keptFreeBytes: number;

  private constructor(root: string, keptFree: number) {
    this.#root = root;
    this.#keptFreeBytes = keptFree;
  }

  /** Makes the directory where it is missing (readable by its owner alone) and removes what crashes left. Throws `store/failed`. */
  static async open(root: string, options: DirectoryObjectStoreOptions = {}): Promise<DirectoryObjectStore> {
    return attempt("open", async () => {
      await mkdir(join(root, "incoming"), { recursive: true, mode: 0o700 });
      await removeAbandoned(join(root, "incoming"), Date.now() - abandonedAfterMs);
      return new DirectoryObjectStore(root, options.keptFreeBytes ?? keptFreeBytes);
    });
  }

  /** One that is there already, which nothing is written to by this. Throws `store/failed`. */
  static async existing(root: string): Promise<DirectoryObjectStore> {
    return attempt("open", async () => {
      await readdir(root);
      return new DirectoryObjectStore(root, keptFreeBytes);
    });
  }

  /** The first objects, two at most, whose names begin with these two or more hexadecimal characters. Throws `store/failed`. */
  async namedLike(beginning: string): Promise<readonly Digest[]> {
    const folder = join(this.#root, beginning.slice(0, 2));
    return attempt("list", async () => {
      if ((await statIfThere(folder)) === undefined) return [];
      const names = (await readdir(folder)).filter((name) => name.startsWith(beginning));
      return names.slice(0, 2).map(parseDigest);
    });
  }

  async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    if (bytes.length > objectLimitBytes)
      throw new SpaceError("input/too-large", { what: "object", limitBytes: objectLimitBytes });
    if (sha256(bytes) !== digest)
      throw new SpaceError("snapshot/refused", { problem: "bytes are not the digest's" });
    await attempt("put", async () => {
      const path = this.#path(digest);
      if ((await statIfThere(path)) === undefined)
        return this.#write(path, await compress(bytes, compression));
      // The process that renamed it may not have synced the name yet.
      await syncFolder(dirname(path));
    });
  }

  async get(digest: Digest): Promise<Uint8Array> {
    const bytes = await this.#read(digest);
    if (bytes !== undefined && sha256(bytes) === digest) return bytes;
    throw new SpaceError("snapshot/refused", { problem: "stored bytes are damaged" });
  }

  async has(digest: Digest): Promise<boolean> {
    return attempt("stat", async () => (await statIfThere(this.#path(digest))) !== undefined);
  }

  async remove(digest: Digest): Promise<void> {
    await attempt("remove", async () => rm(this.#path(digest), { force: true }));
  }

  /** The plain bytes, unchecked; undefined when they do not decompress to a permitted length. */
  async #read(digest: Digest): Promise<Buffer | undefined> {
    const path = this.#path(digest);
    const stored = await attempt("get", async () => {
      const found = await statIfThere(path);
      if (found === undefined) throw new SpaceError("snapshot/missing", { digest });
      return found.size > objectLimitBytes + compressionSlackBytes ? undefined : readFile(path);
    });
    if (stored === undefined) return undefined;
    try {
      return await decompress(stored, { maxOutputLength: objectLimitBytes });
    } catch {
      return undefined; // damaged: the caller refuses it, as it does a wrong digest
    }
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const { bavail, bsize } = await statfs(this.#root);
    if (bavail * bsize < this.#keptFreeBytes + bytes.length) throw full();
    const made = await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    if (made !== undefined) await syncFolder(this.#root);
    await replaceFile(path, bytes, { temporary: join(this.#root, "incoming", randomUUID()) });
  }

  #path(digest: Digest): string {
    return join(this.#root, digest.slice(0, 2), digest);
  }
}

function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** Runs one step; what the file system refuses becomes `store/failed`. */
async function attempt<T>(step: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (isFull(cause) || (isSpaceError(cause) && isFull(cause.cause))) throw full(cause);
    if (isSpaceError(cause)) throw cause;
    throw new SpaceError("store/failed", { step }, { cause });
  }
}

function full(cause?: unknown): SpaceError<"store/full"> {
  return new SpaceError("store/full", { what: "snapshots" }, { cause });
}

/** No room for bytes, or for names; or this user has had his share. */
function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

function isAbsence(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

async function removeAbandoned(folder: string, beforeMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await statIfThere(path);
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { force: true });
  }
}
