// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChildProcess } from "node:child_process";

/** Resolves with what a program exits with, 1 where a signal ended it; rejects where it could not be started. */
export function exitCode(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}
