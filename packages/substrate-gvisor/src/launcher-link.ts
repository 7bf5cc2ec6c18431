// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { LaunchClient, LaunchExit } from "@space/spaced-guest";
import { connectLauncher, type LauncherCommand } from "@space/substrate-namespace";

export interface LauncherEvents {
  onExit(exit: LaunchExit): void;
  /** The launcher has ended, and all that it ran with it. */
  onLost(): void;
}

/** The launcher that this driver's sandboxes are children of; after its death a new one, when something is asked of it. */
export class LauncherLink {
  readonly #command: LauncherCommand;
  readonly #events: LauncherEvents;
  #client: LaunchClient;
  #lost = false;
  #reconnecting: Promise<LaunchClient> | undefined;
  /** what a launcher that had to be restarted must know. */
  #deadlineNs = 0n;

  /** Connects to the one that runs, with all it runs, or starts one. */
  static async open(command: LauncherCommand, events: LauncherEvents): Promise<LauncherLink> {
    return new LauncherLink(command, events, await connectLauncher(command));
  }

  private constructor(command: LauncherCommand, events: LauncherEvents, client: LaunchClient) {
    this.#command = command;
    this.#events = events;
    this.#client = client;
    this.#listen(client);
  }

  /** The last one that was connected. */
  get client(): LaunchClient {
    return this.#client;
  }

  get isLost(): boolean {
    return this.#lost;
  }

  connected(): Promise<LaunchClient> {
    if (!this.#lost) return Promise.resolve(this.#client);
    this.#reconnecting ??= this.#reconnect().finally(() => {
      this.#reconnecting = undefined;
    });
    return this.#reconnecting;
  }

  async holdUntil(deadlineNs: bigint): Promise<void> {
    this.#deadlineNs = deadlineNs;
    await (await this.connected()).lease(deadlineNs);
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
    client.onExit((exit) => this.#events.onExit(exit));
    client.onClose(() => {
      if (this.#lost) return;
      this.#lost = true;
      this.#events.onLost();
    });
  }
}
