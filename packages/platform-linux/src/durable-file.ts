// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { SpaceError } from "@space/model";

export interface ReplaceOptions {
  /** Of the new file, which never has a wider one. Default 0600. */
  readonly mode?: number;
  /**
   * Where the new contents are until they are whole: a name on the same file system that nobody else writes. Default: a
   * name of its own beside the file, so that several processes may replace it at the same time, and the last one stays.
   */
  readonly temporary?: string;
}

const privateMode = 0o600;
/** Never through a link that somebody has put there. */
const freshOnly = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/**
 * Replaces a file in one step: after a crash it holds the old contents or the new ones, and once this has resolved, the
 * new ones, under their name. A failure changes nothing and leaves no temporary file. Throws `store/failed`.
 */
export async function replaceFile(
  path: string,
  contents: Uint8Array | string,
  { mode = privateMode, temporary = temporaryFor(path) }: ReplaceOptions = {},
): Promise<void> {
  try {
    await rm(temporary, { force: true }); // of a process that crashed
    await using file = await open(temporary, freshOnly, mode);
    await file.writeFile(contents);
    await file.sync();
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined); // the first failure is the one to report
    throw failed(cause);
  }
}

/** As {@link replaceFile}, for callers that must not let go of the turn. */
export function replaceFileNow(
  path: string,
  contents: Uint8Array | string,
  { mode = privateMode, temporary = temporaryFor(path) }: ReplaceOptions = {},
): void {
  try {
    rmSync(temporary, { force: true });
    const file = openSync(temporary, freshOnly, mode);
    try {
      writeFileSync(file, contents);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    syncFolderNow(dirname(path));
  } catch (cause) {
    removeQuietly(temporary);
    throw failed(cause);
  }
}

/** Makes the names in a folder last: without it a power cut could take a new name back. Throws what the file system says. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

/** As {@link syncFolder}. Also makes a file's bytes last. */
export function syncFolderNow(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function temporaryFor(path: string): string {
  return `${path}.${randomBytes(6).toString("hex")}.new`;
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // the first failure is the one to report
  }
}

function failed(cause: unknown): SpaceError {
  return new SpaceError("store/failed", { step: "replace a file" }, { cause });
}
