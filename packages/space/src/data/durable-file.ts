// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, fsyncSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Writes a file so that it is whole after a crash, the old one or the new. It never has a wider mode than `mode`. */
export function writeDurably(path: string, bytes: Uint8Array, mode = 0o600): void {
  const temporary = `${path}.${process.pid}.new`;
  const file = openSync(temporary, "wx", mode);
  try {
    writeSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncDirectory(dirname(path));
}

/** Without it a power cut could take a new name back: a key would be made again, and what it signed be lost. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
