// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest } from "@space/model";
import { MemoryObjectStore } from "../src/memory-object-store.ts";
import type { WorldPorts } from "./world-ports.ts";

/** Of so many objects that were stored last some are damaged at once; each with this chance. */
const damageable = 40;
const damageChance = 0.4;

/** The objects of a world. What a disk does to them is seen when somebody reads: an altered object, or none. */
export class SimObjectStore extends MemoryObjectStore {
  readonly #ports: Pick<WorldPorts, "loop" | "random" | "faults">;
  readonly #newest: Digest[] = [];
  readonly #whole = new Map<Digest, Uint8Array>();

  constructor(ports: Pick<WorldPorts, "loop" | "random" | "faults">) {
    super();
    this.#ports = ports;
  }

  /** Returns how many objects are damaged from now on, for so long. */
  damage(forMs: number): number {
    const { random, loop } = this.#ports;
    let count = 0;
    for (const digest of this.#newest) {
      const bytes = this.objects.get(digest);
      if (bytes === undefined || this.#whole.has(digest) || !random.chance(damageChance)) continue;
      this.#whole.set(digest, bytes);
      if (random.chance(0.5)) this.objects.delete(digest);
      else this.objects.set(digest, altered(bytes, random.below(bytes.length)));
      loop.after(forMs, undefined, () => this.#repair(digest));
      count += 1;
    }
    return count;
  }

  /** Everything is whole again. */
  repair(): void {
    for (const digest of [...this.#whole.keys()]) this.#repair(digest);
  }

  override async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    await super.put(digest, bytes);
    this.#whole.delete(digest);
    this.#newest.push(digest);
    if (this.#newest.length > damageable) this.#newest.shift();
  }

  override async get(digest: Digest): Promise<Uint8Array> {
    this.#note(digest);
    return super.get(digest);
  }

  override async has(digest: Digest): Promise<boolean> {
    const isThere = await super.has(digest);
    if (!isThere) this.#note(digest);
    return isThere;
  }

  #note(digest: Digest): void {
    if (this.#whole.has(digest)) this.#ports.faults.landed("object-damage");
  }

  #repair(digest: Digest): void {
    const bytes = this.#whole.get(digest);
    if (bytes !== undefined) this.objects.set(digest, bytes);
    this.#whole.delete(digest);
  }
}

/** One byte is another. */
function altered(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
