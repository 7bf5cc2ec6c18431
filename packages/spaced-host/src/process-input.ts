// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { GuestProcess } from "@space/spaced-guest";
import { EnvdError } from "./envd-error.ts";
import { CallerGone } from "./request-body.ts";

/** Inputs that may wait for a process to take earlier ones. */
const waitingLimit = 64;

/** Who sends an input: when he has gone before its turn, it is not written. */
export interface InputSender {
  readonly gone: boolean;
  /** Its bytes are the process's from now on, wherever that goes on. */
  handed?(): void;
}

/** Where input goes: the process while it runs, `waiting` while another connection takes it over, else nowhere. */
export type InputTarget = GuestProcess | "waiting" | undefined;

/**
 * What callers write to one process, in the order of their calls. Each resolves when the process has taken its bytes or
 * the window holds them, so that a process that does not read holds its callers and not the bridge's memory.
 */
export class ProcessInputQueue {
  readonly #target: () => InputTarget;
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #closed = false;
  #resumeWriter: (() => void) | undefined;

  constructor(target: () => InputTarget) {
    this.#target = target;
  }

  /** Whether a caller has said that no more comes. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Writes, in its turn. Throws `internal` behind the end of input, and `resource_exhausted`. */
  async write(bytes: Uint8Array, sender: InputSender): Promise<void> {
    if (this.#closed) throw new EnvdError("internal", "stdin is closed");
    if (this.#waiting >= waitingLimit) {
      throw new EnvdError("resource_exhausted", "too many inputs wait for this process");
    }
    this.#waiting += 1;
    const written = this.#tail.then(() => this.#writeNow(bytes, sender));
    this.#tail = written.catch(() => undefined); // each caller is told of his own failure
    try {
      await written;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** The end of input, after what was written before. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#tail = this.#tail.then(async () => (await this.#running())?.closeStdin());
  }

  /** The process has room again, is somewhere else, or is no more. */
  resume(): void {
    this.#resumeWriter?.();
    this.#resumeWriter = undefined;
  }

  async #writeNow(bytes: Uint8Array, sender: InputSender): Promise<void> {
    if (sender.gone) throw new CallerGone();
    const process = await this.#running();
    if (process === undefined) throw new EnvdError("not_found", "the process has ended");
    // What it cannot send yet it keeps, and takes with it to another connection.
    const isTaken = process.writeStdin(bytes);
    sender.handed?.();
    if (!isTaken) await this.#resumed();
  }

  async #running(): Promise<GuestProcess | undefined> {
    for (;;) {
      const target = this.#target();
      if (target !== "waiting") return target;
      await this.#resumed();
    }
  }

  #resumed(): Promise<void> {
    return new Promise((resolve) => {
      this.#resumeWriter = resolve;
    });
  }
}
