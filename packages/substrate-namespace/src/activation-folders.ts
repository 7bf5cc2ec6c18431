// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type ActivationId, parseActivationId } from "@space/model";
import { runProgram } from "./run-program.ts";

/** What must be known of an activation after the daemon has restarted. Holds no secret. */
export interface ActivationNote {
  readonly uidBase: number;
  readonly diskBytes: number;
}

/** The folders of one activation. */
export interface ActivationFolder {
  readonly path: string;
  /** The writable overlay layer, owned by the guest's root. */
  readonly upper: string;
  /** The overlay's own working folder, on the same file system. */
  readonly work: string;
  /** Empty; the mount point inside the launcher's private mount namespace. */
  readonly root: string;
}

/** The folders of all activations of one worker, under one parent. */
export class ActivationFolders {
  readonly #parent: string;

  constructor(parent: string) {
    this.#parent = parent;
    // 0711: the archiver runs under a guest's user ids and must reach its layer, but not list the others.
    mkdirSync(parent, { recursive: true, mode: 0o711 });
  }

  at(activationId: ActivationId): ActivationFolder {
    const path = join(this.#parent, activationId);
    return { path, upper: join(path, "upper"), work: join(path, "work"), root: join(path, "root") };
  }

  create(activationId: ActivationId, note: ActivationNote): ActivationFolder {
    const folder = this.at(activationId);
    mkdirSync(folder.path, { mode: 0o711 });
    // First of all, so that a sweep after a crash knows whose uids these are.
    writeFileSync(join(folder.path, "note.json"), JSON.stringify(note), { mode: 0o600 });
    mkdirSync(folder.upper, { mode: 0o755 });
    mkdirSync(folder.work, { mode: 0o700 });
    mkdirSync(folder.root, { mode: 0o700 });
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
      if (!("diskBytes" in value) || typeof value.diskBytes !== "number") return undefined;
      return { uidBase: value.uidBase, diskBytes: value.diskBytes };
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
  async remove(activationId: ActivationId): Promise<void> {
    const { path } = this.at(activationId);
    try {
      await rm(path, { recursive: true, force: true });
    } catch {
      // Paths beyond PATH_MAX defeat rm by path; rm(1) walks by descriptor.
      await runProgram("rm", ["-rf", "--one-file-system", "--", path]);
    }
  }
}
