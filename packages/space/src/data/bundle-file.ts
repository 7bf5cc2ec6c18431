// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { type KeyBundleStore, SpaceError } from "@space/model";
import { replaceFileNow } from "@space/platform-linux/durable-file";

interface HeldBundle {
  readonly version: number;
  readonly token: string;
}

/** one receiver's verification bundle in a file: its version, a space, the signed token. One process writes it. */
export class BundleFile implements KeyBundleStore {
  readonly #path: string;
  #held: HeldBundle | undefined;

  /** Throws `store/failed` for a file that this code did not write. */
  constructor(path: string) {
    this.#path = path;
    this.#held = existsSync(path) ? parse(readFileSync(path, "utf8")) : undefined;
  }

  readBundle(): HeldBundle | undefined {
    return this.#held;
  }

  writeBundle(version: number, token: string): boolean {
    if (this.#held !== undefined && this.#held.version >= version) return false;
    replaceFileNow(this.#path, `${version} ${token}\n`);
    this.#held = Object.freeze({ version, token });
    return true;
  }
}

function parse(text: string): HeldBundle {
  const [, version, token] = /^([1-9][0-9]{0,14}) ([A-Za-z0-9_.-]+)\n$/.exec(text) ?? [];
  if (version === undefined || token === undefined) throw new SpaceError("store/failed", { step: "bundle" });
  return Object.freeze({ version: Number(version), token });
}
