// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type PrivateKeyVault, Secret, SpaceError } from "@space/model";
import { replaceFile, syncFolder } from "@space/platform-linux/durable-file";
import { requirePrivate } from "./private-file.ts";

/** The private halves of signing keys, a file of mode 0600 each, in a folder that only their owner may enter. */
export class PrivateKeyFolder implements PrivateKeyVault {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  async write(kid: string, pem: Secret<string>): Promise<void> {
    await replaceFile(this.#path(kid), pem.reveal());
  }

  /** Throws `host/unfit` for a file that others may read. */
  async read(kid: string): Promise<Secret<string> | undefined> {
    const path = this.#path(kid);
    if (!existsSync(path)) return undefined;
    requirePrivate(path);
    return new Secret(readFileSync(path, "utf8"));
  }

  async destroy(kid: string): Promise<void> {
    rmSync(this.#path(kid), { force: true });
    await syncFolder(this.#folder);
  }

  /** A key id is 43 characters of base64url, so it names a file here and nowhere else. */
  #path(kid: string): string {
    if (!/^[A-Za-z0-9_-]{43}$/.test(kid)) throw new SpaceError("signing-key/unknown", { kid });
    return join(this.#folder, `${kid}.pem`);
  }
}
