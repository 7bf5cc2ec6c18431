// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { SpaceError } from "@space/model";
import { LaunchClient } from "@space/spaced-guest";
import { programEnvironment } from "./run-program.ts";

export interface LauncherCommand {
  /** Program and arguments; it prints `ready` when it listens on `socketPath`. */
  readonly argv: readonly string[];
  readonly socketPath: string;
  /** Its error output is appended here. */
  readonly logPath: string;
}

const readyDeadlineMs = 20_000;

/** Connects to the launcher that runs, or starts one that will outlive this process. */
export async function connectLauncher(command: LauncherCommand): Promise<LaunchClient> {
  try {
    return await LaunchClient.connect(command.socketPath);
  } catch {
    // nobody listens: none runs, or its socket is stale
  }
  await startLauncher(command);
  return LaunchClient.connect(command.socketPath);
}

function startLauncher({ argv, logPath }: LauncherCommand): Promise<void> {
  const [program = "", ...args] = argv;
  const log = openSync(logPath, "a", 0o600);
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      clearTimeout(deadline);
      reject(new SpaceError("substrate/failed", { step: "start the launcher" }, { cause }));
    };
    const deadline = setTimeout(() => fail(new Error("the launcher did not become ready")), readyDeadlineMs);
    // An environment of its own: nothing of the daemon's reaches what it starts.
    const child = spawn(program, args, {
      cwd: "/",
      env: programEnvironment,
      detached: true,
      stdio: ["ignore", "pipe", log],
    });
    closeSync(log);
    child.once("error", fail);
    child.once("exit", (code) =>
      fail(new Error(`the launcher ended with ${code ?? "a signal"}; see ${logPath}`)),
    );
    child.stdout?.once("data", () => {
      clearTimeout(deadline);
      child.removeAllListeners("exit");
      child.stdout?.destroy();
      child.unref();
      resolve();
    });
  });
}
