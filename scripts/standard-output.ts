// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Writes lines until whoever reads them has read enough: `| head` ends a listing without an error. */
export function lineWriter(): (line: string) => void {
  let isRead = true;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    isRead = false;
  });
  return (line) => {
    if (isRead) process.stdout.write(`${line}\n`);
  };
}
