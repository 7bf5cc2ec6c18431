// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { posix } from "node:path";
import { EnvdError } from "./envd-error.ts";

/** Longest path that is passed on; the guest's kernel has its own, lower limit for each call. */
const pathLimitBytes = 4096;

/** What relative, empty and `~` paths are resolved against. */
export interface PathBase {
  readonly home: string;
  readonly workdir: string;
}

/**
 * The absolute guest path that a caller's path names: absolute as it is, `~` the user's home, relative below the home,
 * empty the default work directory. Whether it may lead anywhere is for the guest's own kernel to say: paths are
 * resolved inside the guest's root only. Throws `invalid_argument`.
 */
export function resolvePath(path: string, base: PathBase): string {
  if (path.includes("\0")) throw new EnvdError("invalid_argument", "path must not contain a zero byte");
  if (path.length > pathLimitBytes) throw new EnvdError("invalid_argument", "path is too long");
  if (path === "") return base.workdir;
  if (path.startsWith("/")) return path;
  if (path === "~") return base.home;
  if (path.startsWith("~/")) return posix.join(base.home, path.slice(2));
  if (path.startsWith("~"))
    throw new EnvdError("invalid_argument", "cannot expand another user's home directory");
  return posix.join(base.home, path);
}
