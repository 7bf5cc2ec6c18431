// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processStartTime } from "@space/platform-linux";

export function daemonNotePath(run: string): string {
  return join(run, "daemon");
}

/** tells the bridge which process is its daemon now. The folder is root's, so only root can say it. */
export function writeDaemonNote(run: string): void {
  const path = daemonNotePath(run);
  writeFileSync(`${path}.new`, `${process.pid} ${processStartTime(process.pid)}\n`, { mode: 0o644 });
  renameSync(`${path}.new`, path);
}

/** For the bridge: the daemon's pid and start time as noted. */
export function readDaemonNote(path: string): { readonly pid: number; readonly startTime: string } {
  const [pid = "", startTime = ""] = readFileSync(path, "utf8").trim().split(" ");
  return { pid: Number(pid), startTime };
}
