// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isSpaceError, SpaceError } from "@space/model";
import { GuestConnectionError, GuestError, type LaunchClient, type LaunchExit } from "@space/spaced-guest";
import { connectLauncher, type LauncherCommand } from "./launcher-process.ts";

export interface LauncherEvents {
  onExit(exit: LaunchExit): void;
  /** The launcher has ended, and all that it ran with it. */
  onLost(): void;
}

/** The launcher that a driver's guests are children of; after its death a new one, when something is asked of it. */
export class LauncherLink {
  readonly #command: LauncherCommand;
  #events: LauncherEvents | undefined;
  #client: LaunchClient;
  #lost = false;
  #reconnecting: Promise<LaunchClient> | undefined;
  /** what a launcher that had to be restarted must know. */
  #deadlineNs = 0n;

  /** Connects to the one that runs, with all it runs, or starts one. */
  static async open(command: LauncherCommand): Promise<LauncherLink> {
    return new LauncherLink(command, await connectLauncher(command));
  }

  private constructor(command: LauncherCommand, client: LaunchClient) {
    this.#command = command;
    this.#client = client;
    this.#listen(client);
  }

  /** From now on tells whoever drives it, at most one; what was heard before is of nothing that it started. */
  listen(events: LauncherEvents): void {
    this.#events = events;
  }

  /** The last one that was connected. */
  get client(): LaunchClient {
    return this.#client;
  }

  connected(): Promise<LaunchClient> {
    if (!this.#lost) return Promise.resolve(this.#client);
    this.#reconnecting ??= this.#reconnect().finally(() => {
      this.#reconnecting = undefined;
    });
    return this.#reconnecting;
  }

  /** As `Substrate.holdUntil`. Throws `substrate/failed`. */
  async holdUntil(deadlineBootMs: number): Promise<void> {
    this.#deadlineNs = BigInt(Math.floor(deadlineBootMs * 1_000_000));
    try {
      await (await this.connected()).lease(this.#deadlineNs);
    } catch (cause) {
      throw substrateFailure(cause);
    }
  }

  /** Guests die with their launcher; that nothing is left is proved by the control group, not by this. */
  async kill(name: string): Promise<void> {
    try {
      if (!this.#lost) await this.#client.kill(name);
    } catch (error) {
      if (!(error instanceof GuestConnectionError)) throw error;
    }
  }

  close(): void {
    this.#lost = true;
    this.#client.close();
  }

  async #reconnect(): Promise<LaunchClient> {
    this.#client = await connectLauncher(this.#command);
    if (this.#deadlineNs > 0n) await this.#client.lease(this.#deadlineNs);
    this.#lost = false;
    this.#listen(this.#client);
    return this.#client;
  }

  #listen(client: LaunchClient): void {
    client.onExit((exit) => this.#events?.onExit(exit));
    client.onClose(() => {
      if (this.#lost) return;
      this.#lost = true;
      this.#events?.onLost();
    });
  }
}

/** What the launcher, or a guest, answered with, as a driver's failure. */
export function substrateFailure(cause: unknown): unknown {
  if (isSpaceError(cause)) return cause;
  const step = cause instanceof GuestError ? `${cause.step}: ${cause.code}` : "start";
  return new SpaceError("substrate/failed", { step }, { cause });
}

/** How a process ended, for people. */
export function endingOf({ waitStatus }: LaunchExit): string {
  const signal = waitStatus & 0x7f;
  return signal === 0 ? `ended with ${waitStatus >> 8}` : `killed by signal ${signal}`;
}
