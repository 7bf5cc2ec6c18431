// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { StoredBytes } from "@space/model";
import { MemoryByteStore } from "@space/snapshot";
import type { WorldPorts } from "./world-ports.ts";

/** Of so many chunks that were stored last some are damaged at once; each with this chance. */
const damageable = 40;
const damageChance = 0.4;

const keyPrefix = "keys/";

type Held = NonNullable<ReturnType<MemoryByteStore["held"]["get"]>>;

/** The store of a world. What a disk does to chunks is seen when somebody reads: an altered one, or none. */
export class SimByteStore extends MemoryByteStore {
  readonly #ports: Pick<WorldPorts, "loop" | "random" | "faults">;
  readonly #newest: string[] = [];
  readonly #whole = new Map<string, Held>();
  /** The tenants' wrapped keys: few, and asked for in each pause, among chunks that are many. */
  readonly #keys = new Map<string, StoredBytes>();

  constructor(ports: Pick<WorldPorts, "loop" | "random" | "faults">) {
    super(() => ports.loop.nowMs);
    this.#ports = ports;
  }

  /** Returns how many chunks are damaged from now on, for so long. */
  damage(forMs: number): number {
    const { random, loop } = this.#ports;
    let count = 0;
    for (const key of this.#newest) {
      const whole = this.held.get(key);
      if (whole === undefined || this.#whole.has(key) || !random.chance(damageChance)) continue;
      this.#whole.set(key, whole);
      if (random.chance(0.5)) this.held.delete(key);
      else this.held.set(key, { ...whole, bytes: altered(whole.bytes, random.below(whole.bytes.length)) });
      loop.after(forMs, undefined, () => this.#repair(key));
      count += 1;
    }
    return count;
  }

  /** Everything is whole again. */
  repair(): void {
    for (const key of [...this.#whole.keys()]) this.#repair(key);
  }

  /** Keeps the object that it is given: who has sealed something changes it no more. */
  override async put(key: string, bytes: Uint8Array): Promise<void> {
    this.held.set(key, { bytes, modifiedMs: this.#ports.loop.nowMs });
    this.#whole.delete(key);
    if (key.startsWith(keyPrefix))
      this.#keys.set(key, { key, sizeBytes: bytes.length, modifiedMs: this.#ports.loop.nowMs });
    if (!key.startsWith("chunks/")) return;
    this.#newest.push(key);
    if (this.#newest.length > damageable) this.#newest.shift();
  }

  override async get(key: string): Promise<Uint8Array | undefined> {
    this.#note(key);
    return this.held.get(key)?.bytes;
  }

  override async *list(prefix: string): AsyncIterable<StoredBytes> {
    if (!prefix.startsWith(keyPrefix)) return yield* super.list(prefix);
    for (const found of [...this.#keys.values()]) if (found.key.startsWith(prefix)) yield found;
  }

  override async has(key: string): Promise<boolean> {
    const isThere = this.held.has(key);
    if (!isThere) this.#note(key);
    return isThere;
  }

  #note(key: string): void {
    if (this.#whole.has(key)) this.#ports.faults.landed("object-damage");
  }

  #repair(key: string): void {
    const whole = this.#whole.get(key);
    if (whole !== undefined) this.held.set(key, whole);
    this.#whole.delete(key);
  }
}

/** One byte is another. */
function altered(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
