// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { continuationWaitMs } from "@space/wire";
import type { CarriedState } from "./carried-state.ts";
import { EnvdError } from "./envd-error.ts";
import { CallerGone } from "./request-body.ts";
import type { RunningTime } from "./running-time.ts";
import { StreamLost } from "./stream-lost.ts";

/** Inputs of one sandbox whose names are remembered. */
const inputLimit = 20_000;

interface RememberedInput {
  readonly atMs: number;
  readonly written: Promise<void>;
  over: boolean;
  /** The process has it, or will. */
  handed: boolean;
}

/** the inputs of one call each, by their names: presented again, they are not written again. */
export class InputMemory {
  readonly #time: RunningTime;
  readonly #inputs = new Map<string, RememberedInput>();
  /** When an input was last forgotten before its time: for want of room, or with the memory before this one. */
  #forgotMs: number;

  readonly #limit: number;

  /** `isFirst`: nothing has ever run in this sandbox before, so no input was given to an earlier one. */
  constructor(time: RunningTime, isFirst: boolean, limit: number = inputLimit) {
    this.#time = time;
    this.#limit = limit;
    this.#forgotMs = isFirst ? Number.NEGATIVE_INFINITY : time.nowMs();
  }

  get size(): number {
    return this.#inputs.size;
  }

  /**
   * Writes the named input, once. `again`: it may have been presented before. Rejects as `write` did, or with
   * `StreamLost` when nobody can tell any more.
   */
  once(key: string, again: boolean, write: (handed: () => void) => Promise<void>): Promise<void> {
    const known = this.#inputs.get(key);
    if (known !== undefined) return known.written;
    const atMs = this.#time.nowMs();
    if (again && atMs - this.#forgotMs < continuationWaitMs) return Promise.reject(new StreamLost());
    this.#makeRoom(atMs);
    let isHanded = false;
    const written = write(() => {
      isHanded = true;
      input.handed = true;
    });
    const input: RememberedInput = { atMs, written, over: false, handed: isHanded };
    this.#inputs.set(key, input);
    written.then(
      () => {
        input.over = true;
        input.handed = true;
      },
      (error: unknown) => {
        input.over = true;
        if (error instanceof CallerGone) this.#inputs.delete(key); // nothing was written
      },
    );
    return input.written;
  }

  /** What a process has got or will get: whatever else was asked for has had no effect. */
  save(): CarriedState["inputs"] {
    const keys = [...this.#inputs].flatMap(([key, { handed }]) => (handed ? [key] : []));
    const agoMs = this.#time.nowMs() - this.#forgotMs;
    return { keys, forgotAgoMs: Number.isFinite(agoMs) ? agoMs : null };
  }

  restore({ keys, forgotAgoMs }: CarriedState["inputs"]): void {
    const atMs = this.#time.nowMs();
    this.#forgotMs = forgotAgoMs === null ? Number.NEGATIVE_INFINITY : atMs - forgotAgoMs;
    for (const key of keys)
      this.#inputs.set(key, { atMs, written: Promise.resolve(), over: true, handed: true });
  }

  #makeRoom(nowMs: number): void {
    for (const [key, { atMs, over }] of this.#inputs) {
      const isDue = nowMs - atMs >= continuationWaitMs;
      if (!isDue && this.#inputs.size < this.#limit) return;
      if (!over) continue;
      this.#inputs.delete(key);
      if (!isDue) this.#forgotMs = nowMs;
    }
    if (this.#inputs.size >= this.#limit)
      throw new EnvdError("resource_exhausted", "too many inputs wait in this sandbox");
  }
}
