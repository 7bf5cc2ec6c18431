// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SubstrateAbilities } from "@space/model";
import { nativeLauncherPath } from "@space/spaced-guest";
import type { LauncherCommand } from "./launcher-process.ts";
import { nativeRangeRunner, type RangeRunner } from "./layer-archive.ts";

export type LauncherKind = "native" | "portable";

/** A way to start guests on this host. */
export interface Launcher {
  readonly command: LauncherCommand;
  readonly inRange: RangeRunner;
  readonly abilities: SubstrateAbilities;
}

export function chooseLauncher(
  kind: LauncherKind | undefined,
  socketPath: string,
  seccompPath: string,
  stateDir: string,
): Launcher {
  const native = kind === undefined ? existsSync(nativeLauncherPath) : kind === "native";
  const argv = [nativeLauncherPath, "--socket", socketPath, "--seccomp", seccompPath];
  if (!native) throw new TypeError("the portable launcher is not there yet");
  return {
    command: { argv, socketPath, logPath: join(stateDir, "launcher.log") },
    inRange: nativeRangeRunner(nativeLauncherPath),
    abilities: {
      name: "namespace",
      freeze: true,
      memorySnapshots: false,
      terminals: native,
      launcher: native ? "native" : "portable",
    },
  };
}
