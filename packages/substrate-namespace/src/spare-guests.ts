// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import type { ExecutionLimits } from "@space/model";
import type { ControlGroups } from "@space/platform-linux";
import type { LaunchClient, PrepareRecord } from "@space/spaced-guest";
import { type ActivationFolders, sparePrefix } from "./activation-folders.ts";
import type { UidRanges } from "./uid-ranges.ts";

/** A guest that is complete but for its identity. It runs nothing and holds no secret. */
export interface SpareGuest {
  readonly name: string;
  readonly uidBase: number;
}

export interface SparePorts {
  readonly folders: ActivationFolders;
  readonly groups: ControlGroups;
  readonly ranges: UidRanges;
  readonly launcher: () => Promise<LaunchClient>;
  /** What a guest of this worker is made of, beside its own folders. */
  readonly recipe: Pick<PrepareRecord, "lowerDir" | "rootDir" | "binds" | "tmpfsLimitBytes">;
}

/** What a spare may use; the limits of its activation replace these before it runs anything. */
const spareLimits: ExecutionLimits = {
  memoryBytes: 64 * 1024 * 1024,
  cpus: 1,
  processes: 16,
  diskBytes: 0,
};

/**
 * Keeps a few guests prepared, so that a start costs its last step only. A start that finds none ready makes its own:
 * spares change when work is done, never what comes out.
 */
export class SpareGuests {
  readonly #wanted: number;
  readonly #ports: SparePorts;
  readonly #ready: SpareGuest[] = [];
  #refilling: Promise<void> | undefined;
  #closed = false;

  constructor(wanted: number, ports: SparePorts) {
    this.#wanted = wanted;
    this.#ports = ports;
  }

  /** A spare, or undefined when none is ready. */
  take(): SpareGuest | undefined {
    return this.#ready.shift();
  }

  /** Makes what is missing, in the background. To be called after a start, whose own work it would hold up. */
  refill(): void {
    if (this.#closed || this.#refilling !== undefined || this.#ready.length >= this.#wanted) return;
    this.#refilling = this.#makeAll().finally(() => {
      this.#refilling = undefined;
    });
  }

  /** Forgets one that has ended by itself, with all that was its. */
  async drop(name: string): Promise<void> {
    const at = this.#ready.findIndex((spare) => spare.name === name);
    const [spare] = at < 0 ? [] : this.#ready.splice(at, 1);
    if (spare !== undefined) await this.#discard(spare);
  }

  /** Gives one up for its range, when a start needs it more. False when there is none. */
  async sacrifice(): Promise<boolean> {
    const spare = this.#ready.shift();
    if (spare !== undefined) await this.#discard(spare);
    return spare !== undefined;
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
    await this.#refilling;
    await this.dropAll();
  }

  async #makeAll(): Promise<void> {
    while (!this.#closed && this.#ready.length < this.#wanted) {
      const spare = await this.#make();
      if (spare === undefined) return; // the next start meets the problem and reports it
      this.#ready.push(spare);
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
