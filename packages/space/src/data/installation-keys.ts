// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "@space/model";
import { replaceFileNow } from "@space/platform-linux/durable-file";
import type { DataDirectory } from "./data-directory.ts";
import { PrivateKeyFolder } from "./private-key-folder.ts";
import { RootKeyFile } from "./root-key-file.ts";

/** What an installation signs and derives with, each in its own place. */
export interface InstallationKeys {
  readonly rootKey: RootKeyFile;
  readonly privateKeys: PrivateKeyFolder;
  readonly tokenSecret: Secret<Uint8Array>;
}

/** Finds the keys, or makes the root key and the token secret at the first start. Throws `host/unfit`. */
export function openInstallationKeys(directory: DataDirectory): InstallationKeys {
  const { control } = directory;
  rmSync(join(control, "signing.pem"), { force: true }); // of the time before rotation: it signs nothing any more
  return {
    rootKey: RootKeyFile.open(directory),
    privateKeys: new PrivateKeyFolder(join(control, "signing-keys")),
    tokenSecret: loadSecret(join(control, "token-secret")),
  };
}

function loadSecret(path: string): Secret<Uint8Array> {
  if (!existsSync(path)) replaceFileNow(path, randomBytes(32));
  return new Secret<Uint8Array>(readFileSync(path));
}
