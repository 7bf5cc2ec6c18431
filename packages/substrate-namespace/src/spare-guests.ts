// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import type { ExecutionLimits } from "@space/model";
import type { ControlGroups } from "@space/platform-linux";
import type { LaunchClient, PrepareRecord } from "@space/spaced-guest";
import { type ActivationFolders, sparePrefix } from "./activation-folders.ts";
import { type SpareBounds, SpareDemand } from "./spare-demand.ts";
import type { UidRanges } from "./uid-ranges.ts";

/** A guest that is complete but for its identity. It runs nothing and holds no secret. */
export interface SpareGuest {
  readonly name: string;
  readonly uidBase: number;
}

export interface SparePorts {
  readonly folders: Pick<ActivationFolders, "createSpare" | "listSpares" | "remove">;
  readonly groups: Pick<ControlGroups, "create" | "destroy" | "list">;
  readonly ranges: Pick<UidRanges, "take" | "give">;
  readonly launcher: () => Promise<Pick<LaunchClient, "prepare" | "kill" | "list">>;
  /** Calls once after a while, unless the returned function is called before. Keeps no process alive. */
  readonly after: (delayMs: number, action: () => void) => () => void;
  /** What a guest of this worker is made of, beside its own folders. */
  readonly recipe: Pick<PrepareRecord, "lowerDir" | "rootDir" | "binds" | "tmpfsLimitBytes" | "programPath">;
}

/** What a spare may use; the limits of its activation replace these before it runs anything. */
const spareLimits: ExecutionLimits = {
  memoryBytes: 64 * 1024 * 1024,
  cpus: 1,
  processes: 16,
  diskBytes: 0,
};

/**
 * No start for so long, and spares are made. Making one costs both cores a few milliseconds, which the start before it
 * needs for its first command; and while starts follow each other without a pause, a spare saves none of the work.
 */
const calmMs = 15;

/** See `SpareDemand`: what a burst has raised is kept for one to two of these. */
const periodMs = 30_000;

/**
 * The warm pool: guests prepared ahead, as many as demand says, so that a start costs its last step only. A start that
 * finds none ready makes its own: spares change when work is done, never what comes out.
 */
export class SpareGuests {
  readonly #demand: SpareDemand;
  readonly #ports: SparePorts;
  readonly #ready: SpareGuest[] = [];
  #refilling: Promise<void> | undefined;
  #trimming: Promise<void> = Promise.resolve();
  #cancelCalm: (() => void) | undefined;
  #cancelPeriod: (() => void) | undefined;
  /** How many starts wait for a range that a spare holds. */
  #yielding = 0;
  #closed = false;

  constructor(bounds: SpareBounds, ports: SparePorts) {
    this.#demand = new SpareDemand(bounds);
    this.#ports = ports;
  }

  /** A spare for a start, or undefined when none is ready. Nobody gets the same. */
  take(): SpareGuest | undefined {
    this.#demand.noteStart();
    this.#watchDemand();
    return this.#ready.shift();
  }

  /** Makes what is missing, in the background, once starts have paused. To be called after each start. */
  refill(): void {
    this.#cancelCalm?.();
    this.#cancelCalm = undefined;
    if (this.#closed || this.#ready.length >= this.#demand.wanted) return;
    this.#cancelCalm = this.#ports.after(calmMs, () => this.#refillNow());
  }

  #refillNow(): void {
    this.#cancelCalm = undefined;
    if (this.#closed) return;
    // One round at a time: one that a start has cut short ends with the spare it is at.
    const before = this.#refilling ?? Promise.resolve();
    const round = before.then(() => this.#makeAll());
    this.#refilling = round;
    void round.finally(() => {
      if (this.#refilling === round) this.#refilling = undefined;
    });
  }

  /** Forgets one that has ended by itself, with all that was its. */
  async drop(name: string): Promise<void> {
    const at = this.#ready.findIndex((spare) => spare.name === name);
    const [spare] = at < 0 ? [] : this.#ready.splice(at, 1);
    if (spare !== undefined) await this.#discard(spare);
  }

  /** Gives one up for its range, when a start needs it more; one that is just being made too. False when there is none. */
  async sacrifice(): Promise<boolean> {
    this.#yielding += 1; // no further one is begun meanwhile
    try {
      if (this.#ready.length === 0) await this.#refilling;
      const spare = this.#ready.shift();
      if (spare !== undefined) await this.#discard(spare);
      return spare !== undefined;
    } finally {
      this.#yielding -= 1;
    }
  }

  /** All of them have died with their launcher. */
  async dropAll(): Promise<void> {
    for (const spare of this.#ready.splice(0)) await this.#discard(spare);
  }

  /** Ends those of an earlier daemon. `claimed` are the groups of spares that have become activations. Call before `refill`. */
  async discardLeftovers(claimed: ReadonlySet<string>): Promise<void> {
    const listing = await (await this.#ports.launcher()).list();
    const names = [...listing.map(({ name }) => name), ...(await this.#ports.groups.list())];
    const left = new Set([
      ...names.filter((name) => name.startsWith(sparePrefix)),
      ...this.#ports.folders.listSpares(),
    ]);
    for (const name of left) if (!claimed.has(name)) await this.#remove(name);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelCalm?.();
    this.#cancelPeriod?.();
    await this.#refilling;
    await this.#trimming;
    await this.dropAll();
  }

  async #makeAll(): Promise<void> {
    while (this.#ready.length < this.#demand.wanted) {
      // A start meanwhile sets the timer: the rest waits for the next pause.
      if (this.#closed || this.#cancelCalm !== undefined || this.#yielding > 0) return;
      const spare = await this.#make();
      if (spare === undefined) return; // the next start meets the problem and reports it
      this.#ready.push(spare);
    }
    this.#demand.noteFull();
  }

  /** While more than the least are wanted, time decides whether they still are. */
  #watchDemand(): void {
    if (this.#closed || this.#cancelPeriod !== undefined || !this.#demand.isRaised) return;
    this.#cancelPeriod = this.#ports.after(periodMs, () => {
      this.#cancelPeriod = undefined;
      this.#demand.turn();
      this.#trimming = this.#trimming.then(() => this.#trim());
      this.#watchDemand();
    });
  }

  async #trim(): Promise<void> {
    while (!this.#closed && this.#ready.length > this.#demand.wanted) {
      const spare = this.#ready.pop();
      if (spare !== undefined) await this.#discard(spare).catch(() => undefined); // swept later
    }
  }

  async #make(): Promise<SpareGuest | undefined> {
    const { folders, groups, ranges, launcher, recipe } = this.#ports;
    const name = `${sparePrefix}${randomBytes(8).toString("hex")}`;
    let uidBase: number | undefined;
    try {
      uidBase = ranges.take();
      const folder = folders.createSpare(name, uidBase);
      const cgroupFiles = groups.create(name, spareLimits);
      const places = { upperDir: folder.upper, workDir: folder.work };
      await (await launcher()).prepare({ name, uidBase, cgroupFiles, ...places, ...recipe });
      return { name, uidBase };
    } catch {
      if (uidBase !== undefined) await this.#discard({ name, uidBase }).catch(() => undefined); // swept later
      return undefined;
    }
  }

  async #discard({ name, uidBase }: SpareGuest): Promise<void> {
    await this.#remove(name);
    this.#ports.ranges.give(uidBase);
  }

  async #remove(name: string): Promise<void> {
    const { folders, groups, launcher } = this.#ports;
    await (await launcher()).kill(name);
    await groups.destroy(name);
    await folders.remove(name);
  }
}
