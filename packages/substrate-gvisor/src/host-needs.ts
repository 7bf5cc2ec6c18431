// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { type ExecutionLimits, SpaceError } from "@space/model";
import { nativeLauncherPath } from "@space/spaced-guest";
import type { GvisorSubstrateOptions } from "./options.ts";

/** What the kernel in user space, its file server and its supervisor take for themselves. */
const overhead = { memoryBytes: 128 * 1024 * 1024, processes: 512 } as const;
/** Tasks of the host's that one task of the guest's may come to. */
const tasksPerTask = 2;
const longestSocketDir = 62;

/** Throws `host/unfit`. */
export function requireFit({ socketDir }: GvisorSubstrateOptions): void {
  const unfit = (problem: string, remedy: string): SpaceError =>
    new SpaceError("host/unfit", { problem, remedy });
  if (process.getuid?.() !== 0) throw unfit("gVisor's sandboxes need root", "run the worker as root");
  if (!existsSync(nativeLauncherPath))
    throw unfit(
      "the guest's program in a gVisor sandbox is the compiled one",
      "install gcc and libc6-dev, then start again",
    );
  if (Buffer.byteLength(socketDir) > longestSocketDir)
    throw unfit("the path of the sockets' folder is too long", "choose a shorter one");
}

/** The guest's own limits, and what is needed around it. */
export function hostLimits(limits: ExecutionLimits): ExecutionLimits {
  return {
    ...limits,
    memoryBytes: limits.memoryBytes + overhead.memoryBytes,
    processes: limits.processes * tasksPerTask + overhead.processes,
  };
}
