// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { bootTimeNs } from "./boot-time.ts";

/** How often the clock is looked at while a deadline is ahead: a timer alone stands still while the host sleeps. */
const lookMs = 1000;

/** The file that freezes a guest's control group: of cgroup v2, or else of the freezer of v1. */
export function freezerOf(cgroupFiles: readonly string[]): string | undefined {
  const found = ["cgroup.freeze", "freezer.state"].flatMap((name) =>
    cgroupFiles.map((file) => join(dirname(file), name)),
  );
  return found.find((file) => {
    try {
      accessSync(file, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** the deadline until which the worker may serve; when it passes, every guest is frozen. */
export class Fence {
  readonly #freezers = new Set<string>();
  readonly #fenced = new Set<string>();
  #deadlineNs = 0n;
  #timer: NodeJS.Timeout | undefined;

  /** A guest that runs. Frozen at once while there is no lease. */
  add(freezer: string): void {
    this.#freezers.add(freezer);
    if (this.#hasPassed) this.#freeze(freezer);
  }

  remove(freezer: string): void {
    this.#freezers.delete(freezer);
    this.#fenced.delete(freezer);
  }

  /** What was frozen only because the deadline had passed goes on before this returns. */
  holdUntil(deadlineNs: bigint): void {
    this.#deadlineNs = deadlineNs;
    if (!this.#hasPassed) {
      for (const freezer of this.#fenced) setFrozen(freezer, false);
      this.#fenced.clear();
    }
    this.#look();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Nobody has said a deadline: nothing is fenced. */
  get #hasPassed(): boolean {
    return this.#deadlineNs !== 0n && bootTimeNs() >= this.#deadlineNs;
  }

  #look(): void {
    clearTimeout(this.#timer);
    if (this.#hasPassed) {
      for (const freezer of this.#freezers) this.#freeze(freezer);
      return;
    }
    const leftMs = Number((this.#deadlineNs - bootTimeNs()) / 1_000_000n) + 1;
    this.#timer = setTimeout(() => this.#look(), Math.min(leftMs, lookMs));
  }

  /** What a pause has frozen is left alone, and stays frozen when the lease is back. */
  #freeze(freezer: string): void {
    if (this.#fenced.has(freezer) || isFrozen(freezer)) return;
    setFrozen(freezer, true);
    this.#fenced.add(freezer);
  }
}

function isFrozen(freezer: string): boolean {
  try {
    const state = readFileSync(freezer, "utf8").trim();
    return state !== "0" && state !== "THAWED";
  } catch {
    return true; // the group is gone, and its guest with it
  }
}

function setFrozen(freezer: string, frozen: boolean): void {
  const isVersion2 = basename(freezer) === "cgroup.freeze";
  try {
    writeFileSync(freezer, isVersion2 ? (frozen ? "1" : "0") : frozen ? "FROZEN" : "THAWED");
  } catch {
    // the group is gone, and its guest with it
  }
}
