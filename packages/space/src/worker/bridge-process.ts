// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SpaceError } from "@space/model";
import { checkEndpoint, HeldProcess, requireEndpoint } from "@space/platform-linux";
import type { LaunchClient } from "@space/spaced-guest";
import type { BridgeConfig } from "../bridge/bridge-config.ts";
import { connectLocal } from "../host/local-socket.ts";
import { checkout } from "../product.ts";
import { daemonNotePath } from "./daemon-note.ts";

const bridgeName = "spaced-host";
const connectEveryMs = 20;

export interface BridgePlace {
  /** The worker's folder for sockets. */
  readonly run: string;
  readonly userId: number;
  readonly logPath: string;
}

/**
 * The worker's side of `spaced-host`: starts it through the launcher when none runs, and opens connections to it. The
 * evidence of its process is taken when it is started or found, and compared on every connection.
 */
export class BridgeProcess {
  readonly #place: BridgePlace;
  readonly #launcher: () => LaunchClient;
  readonly #socketPath: string;
  #held: HeldProcess | undefined;

  constructor(place: BridgePlace, launcher: () => LaunchClient) {
    this.#place = place;
    this.#launcher = launcher;
    this.#socketPath = join(place.run, "bridge", "socket");
  }

  /** A connection whose other end is the recorded bridge. Throws `endpoint/mismatch` or `endpoint/unverifiable`. */
  async connect(signal: AbortSignal): Promise<Socket> {
    const held = await this.#running();
    const socket = await this.#dial(held, signal);
    try {
      const recorded = { process: held.evidence, socketPath: this.#socketPath };
      requireEndpoint("bridge", checkEndpoint(socket, recorded));
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** The bridge that runs, by the launcher's word and the kernel's; started now when there is none. */
  async #running(): Promise<HeldProcess> {
    const listed = (await this.#launcher().list()).find(
      ({ name, running }) => name === bridgeName && running,
    );
    if (listed === undefined) return this.#hold(await this.#start());
    const { hostPid, startTime } = listed;
    if (this.#held?.is(hostPid, startTime.toString()) === true) return this.#held;
    return this.#hold({ hostPid, startTime });
  }

  #hold({ hostPid, startTime }: { readonly hostPid: number; readonly startTime: bigint }): HeldProcess {
    this.#held?.release();
    this.#held = undefined;
    this.#held = HeldProcess.hold(hostPid, startTime.toString());
    return this.#held;
  }

  async #start(): Promise<{ readonly hostPid: number; readonly startTime: bigint }> {
    const { run, userId, logPath } = this.#place;
    const folder = join(run, "bridge");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, userId, userId);
    rmSync(this.#socketPath, { force: true });
    const config: BridgeConfig = { socket: this.#socketPath, daemonNote: daemonNotePath(run) };
    const configPath = join(run, "bridge.json");
    writeFileSync(configPath, JSON.stringify(config), { mode: 0o644 });
    return this.#launcher().host({
      name: bridgeName,
      uid: userId,
      gid: userId,
      argv: [process.execPath, join(checkout, "packages/space/src/bridge/host-main.ts"), configPath],
      env: { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
      stderrPath: logPath,
      binds: [
        { path: "/usr", readOnly: true },
        { path: "/proc", readOnly: false },
        { path: "/dev/null", readOnly: false },
        { path: checkout, readOnly: true },
        { path: run, readOnly: false },
      ],
    });
  }

  /** A bridge that was just started does not listen at once. */
  async #dial(held: HeldProcess, signal: AbortSignal): Promise<Socket> {
    for (;;) {
      const socket = await connectOnce(this.#socketPath);
      if (socket !== undefined) return socket;
      if (!held.alive) throw new SpaceError("endpoint/unverifiable", { problem: "the bridge has ended" });
      await pause(connectEveryMs, undefined, { signal });
    }
  }
}

function connectOnce(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connectLocal(path);
    socket.once("connect", () => resolve(socket));
    socket.once("error", () => resolve(undefined));
  });
}
