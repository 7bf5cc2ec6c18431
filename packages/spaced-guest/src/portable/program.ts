// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { GuestError } from "../guest-error.ts";
import { checked, libc } from "./libc.ts";

const execve = libc.func("int execve(const char *path, const char **argv, const char **envp)");
const signalCall = libc.func("void *signal(int number, intptr_t handler)");

const sigpipe = 13;

/** Where tools of the host are looked for. */
export const toolPath = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Replaces this process by another program, found at an absolute path. Throws `GuestError` when that fails. */
export function becomeProgram(argv: readonly string[], env: readonly string[]): never {
  signalCall(sigpipe, 0); // Node ignores it, and an ignored signal stays so over an exec
  checked(execve(argv[0] ?? "", [...argv, null], [...env, null]), "exec");
  throw new TypeError("execve returned");
}

/** Where a tool of the host is. Throws `GuestError` ENOENT. */
export function findProgram(name: string, path: string): string {
  for (const folder of path.split(":")) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // not here; the next folder may have it
    }
  }
  throw new GuestError(2, name);
}
