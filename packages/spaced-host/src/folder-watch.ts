// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { GuestPool, GuestWatch, WatchEvent, WatchOptions } from "@space/spaced-guest";
import type { Subscriber } from "./subscriber.ts";

export interface WatchTarget {
  /** Absolute, in the guest. */
  readonly path: string;
  readonly options: WatchOptions;
}

/** Where the events of one watch go. `onGone` comes once, and then nothing. */
export interface WatchReader {
  /** The reader of a stream, which may go on elsewhere. */
  readonly subscriber?: Subscriber;
  onEvent(event: WatchEvent): void;
  /** Events have been lost; the watch goes on. */
  onOverflow(): void;
  onGone(): void;
}

/**
 * One folder that is watched in the guest. It outlives a change of the guest's identity by being watched anew:
 * what changes in the moment between is not told.
 */
export class FolderWatch {
  readonly target: WatchTarget;
  readonly #reader: WatchReader;
  #watch: GuestWatch | undefined;
  #paused = false;
  #state: "open" | "renaming" | "closed" = "open";

  constructor(target: WatchTarget, reader: WatchReader) {
    this.target = target;
    this.#reader = reader;
  }

  get subscriber(): Subscriber | undefined {
    return this.#reader.subscriber;
  }

  /** Rejects with `GuestError` when it cannot be watched. */
  async open(pool: GuestPool): Promise<void> {
    const connection = await pool.detach();
    try {
      const watch = await connection.watch(this.target.path, this.target.options, {
        onEvent: (event) => {
          if (this.#state !== "closed") this.#reader.onEvent(event);
        },
        onOverflow: () => {
          if (this.#state !== "closed") this.#reader.onOverflow();
        },
        onLost: () => this.#lost(),
      });
      if (this.#state === "closed") return watch.destroy();
      this.#watch = watch;
      if (this.#paused) watch.pause();
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /** Lets events wait in the guest; beyond the kernel's limit they are lost, and told as such. */
  setPaused(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    if (paused) this.#watch?.pause();
    else this.#watch?.resume();
  }

  /** The guest is about to close its connection, with its old identity. */
  expectRekey(): void {
    if (this.#state === "open") this.#state = "renaming";
  }

  /** The guest has its next identity: the folder is watched anew. */
  async renew(pool: GuestPool): Promise<void> {
    if (this.#state !== "renaming") return;
    const old = this.#watch;
    this.#watch = undefined;
    old?.destroy();
    this.#state = "open";
    try {
      await this.open(pool);
    } catch {
      this.#gone(); // the folder is not there any more, or the guest is not
    }
  }

  /** Ends it; the reader is not told. */
  close(): void {
    this.#state = "closed";
    this.#watch?.destroy();
  }

  #lost(): void {
    if (this.#state === "open" && this.#watch !== undefined) this.#gone();
  }

  #gone(): void {
    this.#state = "closed";
    this.#reader.onGone();
  }
}
