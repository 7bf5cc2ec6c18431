// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { statSync } from "node:fs";
import { SpaceError } from "@space/model";

/** Refuses a file with a private key that others than its owner may read or write. Throws `host/unfit`. */
export function requirePrivate(path: string): void {
  if ((statSync(path).mode & 0o077) === 0) return;
  throw new SpaceError("host/unfit", {
    problem: `${path} holds a private key and is open to others`,
    remedy: `chmod go-rwx ${path}, and replace the key if somebody may have read it`,
  });
}
