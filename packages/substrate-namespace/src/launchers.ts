// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { join } from "node:path";
import { SpaceError, type SubstrateAbilities } from "@space/model";
import { nativeLauncherPath, portableLauncherPath } from "@space/spaced-guest";
import type { CriuProgram } from "./criu-program.ts";
import type { LauncherCommand } from "./launcher-process.ts";
import { type RangeRunner, rangeRunner } from "./layer-archive.ts";

export type LauncherKind = "native" | "portable";

/** A way to start guests on this host. */
export interface Launcher {
  readonly command: LauncherCommand;
  readonly inRange: RangeRunner;
  readonly abilities: SubstrateAbilities;
  /** Whether guests can be prepared in advance. */
  readonly prepares: boolean;
}

/** How long guests go on without a worker daemon: a daemon that never comes back leaves nothing running. */
const defaultOrphanSeconds = 120;

export function chooseLauncher(
  kind: LauncherKind | undefined,
  socketPath: string,
  seccompPath: string,
  {
    stateDir,
    orphanSeconds = defaultOrphanSeconds,
    criu,
  }: { readonly stateDir: string; readonly orphanSeconds?: number; readonly criu?: CriuProgram },
): Launcher {
  const native = kind === undefined ? existsSync(nativeLauncherPath) : kind === "native";
  if (criu !== undefined && !native)
    throw new SpaceError("host/unfit", {
      problem: "guests of the portable launcher cannot be saved with their memory",
      remedy: "install gcc and libc6-dev, then start again",
    });
  const program = native ? [nativeLauncherPath] : [process.execPath, portableLauncherPath];
  const orphan = ["--orphan-seconds", String(orphanSeconds)];
  const argv = [...program, "--socket", socketPath, "--seccomp", seccompPath, ...orphan];
  return {
    command: { argv, socketPath, logPath: join(stateDir, "launcher.log") },
    inRange: rangeRunner(program),
    prepares: native,
    abilities: {
      name: "namespace",
      freeze: true,
      memorySnapshots: criu !== undefined,
      terminals: native,
      launcher: native ? "native" : "portable",
    },
  };
}
