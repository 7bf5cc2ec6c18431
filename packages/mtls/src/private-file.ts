// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFile, stat } from "node:fs/promises";

import { SpaceError } from "@space/model";

const fileLimitBytes = 64 * 1024;

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
