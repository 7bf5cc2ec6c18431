// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFile } from "node:child_process";
import { SpaceError } from "@space/model";
import type { SandboxPlaces } from "./sandbox-places.ts";

/** The name of the one sandbox in each of runsc's folders. */
const sandboxName = "g";
const shortLimitMs = 30_000;
/** As long as writing all of a sandbox's memory may take. */
const checkpointLimitMs = 300_000;
const outputLimitBytes = 64 * 1024;

/**
 * What every call needs. `root:memory`: what the guest writes is part of its memory, so that one image holds both.
 * `host-uds=create`: the guest makes the socket by which it is reached. The group is the driver's own.
 */
const common = [
  "--platform=systrap",
  "--network=none",
  "--host-uds=create",
  "--overlay2=root:memory",
  "--file-access-mounts=shared",
  "--ignore-cgroups",
] as const;

/** runsc's command line, for sandboxes each in a folder of its own. */
export class RunscCommands {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /** The command that is the sandbox for as long as it lives; `restore` begins from the image in its folder. */
  runtime(places: SandboxPlaces, how: "run" | "restore"): readonly string[] {
    const image = how === "restore" ? [`--image-path=${places.image}`] : [];
    const rest = [`--pid-file=${places.pidFile}`, `--bundle=${places.bundle}`, ...image, sandboxName];
    return [this.#program, `--root=${places.runscRoot}`, ...common, how, ...rest];
  }

  /** Stops every task of the sandbox from inside. */
  async pause(places: SandboxPlaces): Promise<void> {
    await this.#ask(places, ["pause", sandboxName], shortLimitMs);
  }

  async resume(places: SandboxPlaces): Promise<void> {
    await this.#ask(places, ["resume", sandboxName], shortLimitMs);
  }

  /** Writes memory and files into the image's folder. The tasks stay stopped, if they were. */
  async checkpoint(places: SandboxPlaces): Promise<void> {
    const how = ["--leave-running", "--compression=none", `--image-path=${places.image}`];
    await this.#ask(places, ["checkpoint", ...how, sandboxName], checkpointLimitMs);
  }

  /** Whether its tasks are stopped from inside, by the sandbox's own word. */
  async isPaused(places: SandboxPlaces): Promise<boolean> {
    const state: unknown = JSON.parse(await this.#ask(places, ["state", sandboxName], shortLimitMs));
    return typeof state === "object" && state !== null && "status" in state && state.status === "paused";
  }

  #ask(places: SandboxPlaces, args: readonly string[], timeout: number): Promise<string> {
    const all = [`--root=${places.runscRoot}`, ...common, ...args];
    const options = { cwd: "/", env: {}, timeout, maxBuffer: outputLimitBytes };
    return new Promise((resolve, reject) => {
      execFile(this.#program, all, options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else {
          const cause = new Error(stderr.slice(0, 2000), { cause: error });
          reject(new SpaceError("substrate/failed", { step: `runsc ${args[0] ?? ""}` }, { cause }));
        }
      });
    });
  }
}
