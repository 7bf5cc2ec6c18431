// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity, RuntimeRecord, SandboxId } from "@space/model";
import type { EventLoop } from "./event-loop.ts";
import { epochMs } from "./sim-clock.ts";
import type { SimProcess } from "./sim-machine.ts";
import { readBundle, type Statement } from "./statements.ts";
import type { Presentation } from "./truth.ts";

/** how long bytes may go on after the end of an epoch. */
const epochEndMs = 100;
/** A bundle that a receiver takes so long after it was signed came slowly, whatever the clocks say. */
const slowKeysMs = 25_000;

/** What a worker's disk must hold of a sandbox, because the worker has acknowledged it. */
interface Floor {
  readonly generation: bigint;
  readonly isRetired: boolean;
}

interface EpochEnd {
  readonly epoch: bigint;
  readonly atMs: number;
}

/** What workers have made durable: records, epochs, keys. */
export class ReceiverOracle {
  readonly #loop: EventLoop;
  readonly #violate: (statement: Statement, problem: string) => void;
  /** Of each host, then of each sandbox, in their order. */
  readonly #epochEnds = new Map<string, Map<SandboxId, EpochEnd[]>>();
  readonly #floors = new Map<string, Map<SandboxId, Floor>>();
  readonly #ordered = new Set<string>();
  readonly #revoked = new Map<string, number>();
  readonly #kids = new Map<string, ReadonlySet<string>>();
  /** The epoch under which something last reached each process. */
  readonly #usedEpochs = new Map<number, bigint>();
  /** Told when a bundle took long to reach a receiver. */
  onSlowKeys: () => void = () => undefined;

  constructor(loop: EventLoop, violate: (statement: Statement, problem: string) => void) {
    this.#loop = loop;
    this.#violate = violate;
  }

  /** Somebody wants this execution retired: the only reason for a worker to do so. */
  retirementOrdered({ activation }: ExecutionIdentity): void {
    this.#ordered.add(activation.id);
  }

  /**
   * a worker has acknowledged that it installed, or retired, this identity; `record` is what its disk says then. A
   * retirement of what was never installed there leaves the record as it was.
   */
  acknowledged(
    workerId: string,
    { sandboxId, generation }: ExecutionIdentity,
    record: RuntimeRecord | undefined,
  ): void {
    if (record === undefined || record.identity.generation < generation) return;
    const isRetired = record.state === "retired" && record.identity.generation === generation;
    const floors = this.#floors.get(workerId) ?? new Map<SandboxId, Floor>();
    this.#floors.set(workerId, floors);
    const floor = floors.get(sandboxId);
    if (
      floor === undefined ||
      generation > floor.generation ||
      (generation === floor.generation && isRetired)
    )
      floors.set(sandboxId, { generation, isRetired });
  }

  /** after its host has lost its power, what a worker had acknowledged is still on its disk. */
  powerLost(workerId: string, recordOf: (sandboxId: SandboxId) => RuntimeRecord | undefined): void {
    for (const [sandboxId, floor] of this.#floors.get(workerId) ?? []) {
      const record = recordOf(sandboxId);
      const isKept =
        record !== undefined &&
        (record.identity.generation > floor.generation ||
          (record.identity.generation === floor.generation &&
            (!floor.isRetired || record.state === "retired")));
      if (!isKept)
        this.#violate(
          "R-12: durable before acknowledged",
          `${workerId} has forgotten of ${sandboxId} what it acknowledged for generation ${floor.generation}`,
        );
    }
  }

  recordChanged(host: string, before: RuntimeRecord | undefined, after: RuntimeRecord): void {
    const now = after.identity;
    if (after.state === "retired" && before?.state === "installed" && !this.#ordered.has(now.activation.id))
      this.#violate(
        "R-12: durable before acknowledged",
        `${host} retired generation ${now.generation} of ${now.sandboxId}, which nobody had ordered`,
      );
    if (before === undefined) return;
    const old = before.identity;
    const isLower =
      now.generation < old.generation ||
      (now.generation === old.generation && now.activation.attempt < old.activation.attempt);
    const isConflict = now.generation === old.generation && now.activation.id !== old.activation.id;
    if (isLower || isConflict)
      this.#violate(
        "1: no effect across executions",
        `R-12 ${host}: the record of ${now.sandboxId} went back from ${old.generation} to ${now.generation}`,
      );
    if (before.epoch !== after.epoch)
      this.#endsOf(host, now.sandboxId).push({ epoch: before.epoch, atMs: this.#loop.nowMs });
  }

  /** Something that was let in under this epoch has reached a process. */
  used({ uid }: SimProcess, epoch: bigint): void {
    this.#usedEpochs.set(uid, epoch);
  }

  /** a guest is frozen by a pause, and a pause ends the epoch first. */
  frozen({ uid, sandboxId }: SimProcess, record: RuntimeRecord | undefined): void {
    const used = this.#usedEpochs.get(uid);
    if (used !== undefined && record?.epoch === used)
      this.#violate(
        "3: no byte after the epoch",
        `${sandboxId} was frozen in epoch ${used}, which still holds`,
      );
  }

  /** Bytes of a presented operation leave the worker, either way, under the record that it has now. */
  forwarded({ epoch, host, operation }: Presentation, record: RuntimeRecord | undefined): void {
    if (epoch === undefined || record?.epoch === epoch) return;
    const ends = this.#endsOf(host, operation.sandboxId);
    const endedMs = ends.findLast((end) => end.epoch === epoch)?.atMs;
    if (endedMs === undefined || this.#loop.nowMs > endedMs + epochEndMs)
      this.#violate(
        "3: no byte after the epoch",
        `${host} forwarded bytes of operation ${operation.number} after epoch ${epoch}`,
      );
  }

  #endsOf(host: string, sandboxId: SandboxId): EpochEnd[] {
    const ofHost = this.#epochEnds.get(host) ?? new Map<SandboxId, EpochEnd[]>();
    this.#epochEnds.set(host, ofHost);
    const ends = ofHost.get(sandboxId) ?? [];
    ofHost.set(sandboxId, ends);
    return ends;
  }

  /** a receiver has made this bundle durable: what it leaves out is revoked there from now on. */
  bundleTaken(host: string, token: string): void {
    const { keys, iat } = readBundle(token);
    const { nowMs } = this.#loop;
    const known = this.#kids.get(host) ?? new Set();
    for (const kid of known) {
      const name = `${host} ${kid}`;
      if (!keys.includes(kid) && !this.#revoked.has(name)) this.#revoked.set(name, nowMs);
    }
    this.#kids.set(host, new Set([...known, ...keys]));
    if (epochMs + nowMs - iat * 1000 > slowKeysMs) this.onSlowKeys();
  }

  /** Since when this receiver knows that the key counts no more. */
  revokedMs(host: string, kid: string): number | undefined {
    return this.#revoked.get(`${host} ${kid}`);
  }
}
