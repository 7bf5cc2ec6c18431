// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { type ActivationId, parseActivationId } from "@space/model";
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

/** The folders of all activations of one worker, under one parent. */
export class ActivationFolders {
  readonly #parent: string;

  constructor(parent: string) {
    this.#parent = parent;
    // 0711: the archiver runs under a guest's user ids and must reach its layer, but not list the others.
    mkdirSync(parent, { recursive: true, mode: 0o711 });
    spreadSubfolders(parent);
  }

  at(activationId: string): ActivationFolder {
    const path = join(this.#parent, activationId);
    return { path, upper: join(path, "upper"), work: join(path, "work") };
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
    writeNote(this.at(name).path, note);
    renameSync(this.at(name).path, this.at(activationId).path);
    return this.at(activationId);
  }

  /** Spares of an earlier daemon among them. */
  listSpares(): readonly string[] {
    return readdirSync(this.#parent).filter((name) => name.startsWith(sparePrefix));
  }

  #make(name: string, note: ActivationNote): ActivationFolder {
    const folder = this.at(name);
    mkdirSync(folder.path, { mode: 0o711 });
    writeNote(folder.path, note); // first of all, so that a sweep after a crash knows whose uids these are
    mkdirSync(folder.upper, { mode: 0o755 });
    mkdirSync(folder.work, { mode: 0o700 });
    chownSync(folder.upper, note.uidBase, note.uidBase);
    return folder;
  }

  /** Undefined when there is no such activation, or a crash cut its creation short. */
  note(activationId: ActivationId): ActivationNote | undefined {
    try {
      const text = readFileSync(join(this.#parent, activationId, "note.json"), "utf8");
      const value: unknown = JSON.parse(text);
      if (typeof value !== "object" || value === null) return undefined;
      if (!("uidBase" in value) || typeof value.uidBase !== "number") return undefined;
      if (!("group" in value) || typeof value.group !== "string") return undefined;
      if (!("diskBytes" in value) || typeof value.diskBytes !== "number") return undefined;
      return { uidBase: value.uidBase, diskBytes: value.diskBytes, group: value.group };
    } catch {
      return undefined; // absent or half written
    }
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
    const { path } = this.at(name);
    if (await removedUntouched(path)) return;
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
async function removedUntouched(path: string): Promise<boolean> {
  try {
    await rmdir(join(path, "upper"));
    await unlink(join(path, "work/work/incompat/volatile/dirty"));
    for (const folder of ["work/work/incompat/volatile", "work/work/incompat", "work/work", "work"])
      await rmdir(join(path, folder));
    await unlink(join(path, "note.json"));
    await rmdir(path);
    return true;
  } catch {
    return false; // written to, never mounted, or another kernel's layout: then by looking
  }
}

/**
 * Tells ext4 that the subfolders have nothing to do with each other, so that it spreads their inodes over its groups.
 * Without a journal ext4 searches for each new inode past all that were freed in the group for minutes, which is a
 * millisecond at some dozen starts a second. Other file systems have neither the flag nor the cost.
 */
function spreadSubfolders(path: string): void {
  spawnSync("chattr", ["+T", "--", path], { stdio: "ignore", env: programEnvironment }); // where it is refused: slower
}

function writeNote(path: string, note: ActivationNote): void {
  writeFileSync(join(path, "note.json"), JSON.stringify(note), { mode: 0o600 });
}
