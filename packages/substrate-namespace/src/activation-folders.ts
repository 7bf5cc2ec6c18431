// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, type NoParamCallback, readdirSync, renameSync, rmdir, unlink } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type ActivationId, parseActivationId, SpaceError } from "@space/model";
import { programEnvironment, runProgram } from "./run-program.ts";

/** How the names of guests without an activation begin. */
export const sparePrefix = "spare-";

/** What must be known of an activation after the daemon has restarted. Holds no secret. */
export interface ActivationNote {
  readonly uidBase: number;
  readonly diskBytes: number;
  /** Its control group: named after the activation, or after the spare that became it. */
  readonly group: string;
}

/** The folders of one activation. */
export interface ActivationFolder {
  readonly path: string;
  /** The writable overlay layer, owned by the guest's root. */
  readonly upper: string;
  /** The overlay's own working folder, on the same file system. */
  readonly work: string;
}

/**
 * The folders of all activations of one worker, under one parent. A folder's note is the name of the working folder in it:
 * a file of its own would be one more inode to find and to free for each guest, and would not be there from the first.
 */
export class ActivationFolders {
  readonly #parent: string;
  /** Of the folders that are there, as far as they have been asked for. */
  readonly #notes = new Map<string, ActivationNote>();

  constructor(parent: string) {
    this.#parent = parent;
    // 0711: the archiver runs under a guest's user ids and must reach its layer, but not list the others.
    mkdirSync(parent, { recursive: true, mode: 0o711 });
    spreadSubfolders(parent);
  }

  /** Its layer: see `ActivationFolder`. */
  upperOf(activationId: string): string {
    return join(this.#parent, activationId, "upper");
  }

  create(activationId: ActivationId, note: ActivationNote): ActivationFolder {
    return this.#make(activationId, note);
  }

  /** Folders for a guest that has no activation yet. */
  createSpare(name: string, uidBase: number): ActivationFolder {
    return this.#make(name, { uidBase, diskBytes: 0, group: name });
  }

  /** The spare's folders become the activation's. What the spare has mounted stays mounted. */
  adoptSpare(name: string, activationId: ActivationId, note: ActivationNote): ActivationFolder {
    const before = this.note(name);
    if (before === undefined) throw new SpaceError("substrate/failed", { step: "find the spare's folder" });
    const spare = this.#at(name, before);
    renameSync(spare.work, join(spare.path, workName(note)));
    const folder = this.#at(activationId, note);
    renameSync(spare.path, folder.path);
    this.#notes.delete(name);
    this.#notes.set(activationId, note);
    return folder;
  }

  /** Spares of an earlier daemon among them. */
  listSpares(): readonly string[] {
    return readdirSync(this.#parent).filter((name) => name.startsWith(sparePrefix));
  }

  #make(name: string, note: ActivationNote): ActivationFolder {
    const folder = this.#at(name, note);
    mkdirSync(folder.path, { mode: 0o711 });
    mkdirSync(folder.work, { mode: 0o700 }); // first of all, so that a sweep after a crash knows whose uids these are
    mkdirSync(folder.upper, { mode: 0o755 });
    chownSync(folder.upper, note.uidBase, note.uidBase);
    this.#notes.set(name, note);
    return folder;
  }

  #at(name: string, note: ActivationNote): ActivationFolder {
    const path = join(this.#parent, name);
    return { path, upper: join(path, "upper"), work: join(path, workName(note)) };
  }

  /** Undefined when there is no such activation, or a crash cut its creation short. */
  note(name: string): ActivationNote | undefined {
    const known = this.#notes.get(name);
    if (known !== undefined) return known;
    try {
      for (const entry of readdirSync(join(this.#parent, name))) {
        const note = parseWorkName(entry);
        if (note !== undefined) this.#notes.set(name, note);
      }
    } catch {
      return undefined; // there is no such folder
    }
    return this.#notes.get(name);
  }

  list(): readonly ActivationId[] {
    return readdirSync(this.#parent).flatMap((name) => {
      try {
        return [parseActivationId(name)];
      } catch {
        return []; // not ours to touch
      }
    });
  }

  /** Removes everything, however deep a guest has nested it. */
  async remove(name: string): Promise<void> {
    const path = join(this.#parent, name);
    const note = this.note(name);
    this.#notes.delete(name);
    if (note !== undefined && (await removedUntouched(this.#at(name, note)))) return;
    try {
      await rm(path, { recursive: true, force: true });
    } catch {
      // Paths beyond PATH_MAX defeat rm by path; rm(1) walks by descriptor.
      await runProgram("rm", ["-rf", "--one-file-system", "--", path]);
    }
  }
}

/**
 * What overlay itself leaves of a layer in which nothing was written, in the order of removal: a fifth of the work of
 * finding out what there is. False, with some of it gone, when there is anything else.
 */
async function removedUntouched({ path, upper, work }: ActivationFolder): Promise<boolean> {
  try {
    await Promise.all([removedFolder(upper), removedWork(work)]);
    await removedFolder(path);
    return true;
  } catch {
    return false; // written to, never mounted, or another kernel's layout: then by looking
  }
}

async function removedWork(work: string): Promise<void> {
  await settled((done) => unlink(join(work, "work/incompat/volatile/dirty"), done));
  for (const folder of ["work/incompat/volatile", "work/incompat", "work", "."])
    await removedFolder(join(work, folder));
}

/** On another thread: on a disk that is told of what becomes free, each waits for it. */
const removedFolder = (path: string): Promise<void> => settled((done) => rmdir(path, done));

/** As `node:fs/promises`, for half its price. */
function settled(call: (done: NoParamCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    call((error) => (error === null ? resolve() : reject(error)));
  });
}

/**
 * Tells ext4 that the subfolders have nothing to do with each other, so that it spreads their inodes over its groups.
 * Without a journal ext4 searches for each new inode past all that were freed in the group for minutes, which is a
 * millisecond at some dozen starts a second. Other file systems have neither the flag nor the cost.
 */
function spreadSubfolders(path: string): void {
  spawnSync("chattr", ["+T", "--", path], { stdio: "ignore", env: programEnvironment }); // where it is refused: slower
}

const workPattern = /^work-([0-9]{1,10})-([0-9]{1,16})-([A-Za-z0-9_-]{1,128})$/;

function workName({ uidBase, diskBytes, group }: ActivationNote): string {
  return `work-${uidBase}-${diskBytes}-${group}`;
}

function parseWorkName(name: string): ActivationNote | undefined {
  const [, uidBase, diskBytes, group] = workPattern.exec(name) ?? [];
  if (group === undefined) return undefined;
  return { uidBase: Number(uidBase), diskBytes: Number(diskBytes), group };
}
