// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { exportSigningKey, importSigningKey, newSigningKey, type SigningKey } from "@space/capability";
import type { InstallationKeys } from "@space/control-plane";
import { Secret } from "@space/model";

/** Loads the keys, or makes them at the first start. Files have mode 0600 and appear whole or not at all. */
export function loadInstallationKeys(directory: string): InstallationKeys {
  return {
    root: loadKey(join(directory, "root.pem")),
    signing: loadKey(join(directory, "signing.pem")),
    tokenSecret: loadSecret(join(directory, "token-secret")),
  };
}

function loadKey(path: string): SigningKey {
  if (!existsSync(path)) writeDurably(path, Buffer.from(exportSigningKey(newSigningKey())));
  return importSigningKey(readFileSync(path, "utf8"));
}

function loadSecret(path: string): Secret<Uint8Array> {
  if (!existsSync(path)) writeDurably(path, randomBytes(32));
  return new Secret<Uint8Array>(readFileSync(path));
}

/** Writes a new file of mode 0600 so that it is whole after a crash. */
export function writeDurably(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.${process.pid}.new`;
  const file = openSync(temporary, "wx", 0o600);
  try {
    writeSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncDirectory(dirname(path));
}

/** Without it a power cut could take the new name back: a key would be made again, and what it signed be lost. */
function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
