// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { UnsoundRun } from "../bench/unsound.ts";
import type { PartitionOptions, PartitionReport } from "./partition.ts";

/**
 * Runs the drill in a network namespace of its own, so that nothing of the host's network is touched. Throws
 * {@link UnsoundRun} when it comes to no report; what it said is on this process's standard error then.
 */
export async function partitionInOwnNetwork(options: PartitionOptions): Promise<PartitionReport> {
  const main = join(import.meta.dirname, "partition-main.ts");
  const command = ["--net", "--", process.execPath, main, JSON.stringify(options)];
  const child = spawn("unshare", command, { stdio: ["pipe", "pipe", "inherit"] });
  const pieces: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => pieces.push(piece));
  const pass = (): void => void child.kill("SIGTERM");
  process.once("SIGTERM", pass);
  try {
    const [code] = await once(child, "close");
    if (code !== 0) throw new UnsoundRun(`the drill ended with ${String(code)}`);
    return JSON.parse(Buffer.concat(pieces).toString("utf8")) as PartitionReport; // cast: our own program's word
  } finally {
    process.off("SIGTERM", pass);
  }
}
