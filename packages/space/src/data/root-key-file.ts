// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import {
  exportSigningKey,
  importPublicKey,
  importSigningKey,
  newSigningKey,
  publicKeyText,
} from "@space/capability";
import { type RootKey, Secret, SpaceError } from "@space/model";
import { replaceFileNow, syncFolderNow } from "@space/platform-linux/durable-file";
import type { DataDirectory } from "./data-directory.ts";
import { requirePrivate } from "./private-file.ts";

/** Read by its owner, and written by nobody: it is made once. */
const rootMode = 0o400;

/**
 * the root key in a file of its own (`root-key/root.pem`, mode 0400, in a folder of mode 0700), apart from what
 * signs every day. It is read for one signature and forgotten. The folder may be a mount that is there only while keys
 * are rotated, or the file may be kept elsewhere and named for one command: only the public half
 * (`control/root.pub`), which receivers have pinned, has to stay.
 */
export class RootKeyFile implements RootKey {
  readonly publicKey: string;
  readonly #path: string;
  #lent: string | undefined;

  private constructor(path: string, publicKey: string) {
    this.#path = path;
    this.publicKey = publicKey;
  }

  /** Makes the key where none was ever made. Throws `host/unfit` for a damaged public half. */
  static open({ root, control }: DataDirectory): RootKeyFile {
    const path = join(root, "root-key", "root.pem");
    const pinned = join(control, "root.pub");
    mkdirSync(join(root, "root-key"), { recursive: true, mode: 0o700 });
    if (!existsSync(pinned)) {
      const publicKey = makeOrAdopt(path, join(control, "root.pem"));
      replaceFileNow(pinned, `${publicKey}\n`, { mode: 0o644 });
    }
    return new RootKeyFile(path, readPinned(pinned));
  }

  /** Whether it can be read now. */
  get isHere(): boolean {
    return this.#find() !== undefined;
  }

  async use<T>(work: (pem: Secret<string>) => T): Promise<T> {
    const path = [this.#lent, this.#path].find(
      (candidate) => candidate !== undefined && existsSync(candidate),
    );
    if (path === undefined) throw new SpaceError("root-key/absent", {});
    requirePrivate(path);
    const pem = new Secret(readFileSync(path, "utf8"));
    if (publicKeyOf(pem) !== this.publicKey) {
      const problem = `${path} is not this installation's root key`;
      throw new SpaceError("host/unfit", {
        problem,
        remedy: "name the file that was made with this data directory",
      });
    }
    return work(pem);
  }

  #find(): string | undefined {
    return [this.#lent, this.#path].find((candidate) => candidate !== undefined && existsSync(candidate));
  }

  /** For as long as `work` takes, the key is read from `path` where it is not at its place. */
  async lent<T>(path: string | undefined, work: () => Promise<T>): Promise<T> {
    this.#lent = path;
    try {
      return await work();
    } finally {
      this.#lent = undefined;
    }
  }
}

/** The public half of the key at `path`, which is the one of an older layout, or made now. */
function makeOrAdopt(path: string, older: string): string {
  if (!existsSync(path) && existsSync(older)) {
    chmodSync(older, rootMode);
    renameSync(older, path);
    syncFolderNow(join(older, ".."));
    syncFolderNow(join(path, ".."));
  }
  if (!existsSync(path)) replaceFileNow(path, exportSigningKey(newSigningKey()), { mode: rootMode });
  return publicKeyOf(new Secret(readFileSync(path, "utf8")));
}

function publicKeyOf(pem: Secret<string>): string {
  return publicKeyText(importSigningKey(pem.reveal()).publicKey);
}

function readPinned(path: string): string {
  const text = readFileSync(path, "utf8").trim();
  try {
    importPublicKey(text);
    return text;
  } catch (cause) {
    throw new SpaceError(
      "host/unfit",
      { problem: `${path} is damaged`, remedy: "restore it from a copy" },
      { cause },
    );
  }
}
