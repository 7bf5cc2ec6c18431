// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord, WorkerId } from "@space/model";
import type { SandboxRow } from "./memory-sandbox-rows.ts";

/** What an index files a record under: a time in Unix milliseconds, or infinity for a record that it does not hold. */
type TimeOf = (record: SandboxRecord) => number;

/** Rows by a time of theirs, so that asking for what is due costs nothing while nothing is. */
export class TimeIndex {
  readonly #timeOf: TimeOf;
  readonly #rows = new Set<SandboxRow>();
  /** None of the rows is due before. */
  #earliestMs = Number.POSITIVE_INFINITY;

  constructor(timeOf: TimeOf) {
    this.#timeOf = timeOf;
  }

  /** Must be called after each change of a row. */
  file(row: SandboxRow): void {
    const atMs = this.#timeOf(row.record);
    if (atMs === Number.POSITIVE_INFINITY) {
      this.#rows.delete(row);
      return;
    }
    this.#rows.add(row);
    if (atMs < this.#earliestMs) this.#earliestMs = atMs;
  }

  /** The first `limit` of those whose time has come, by their times. */
  until(nowMs: number, limit: number): readonly SandboxRecord[] {
    if (nowMs < this.#earliestMs) return [];
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { record } of this.#rows) earliestMs = Math.min(earliestMs, this.#timeOf(record));
    this.#earliestMs = earliestMs;
    return nowMs < earliestMs ? [] : this.#sorted((atMs) => atMs <= nowMs).slice(0, limit);
  }

  /** The first `limit` of those whose time is still to come, by their times. */
  after(nowMs: number, limit: number): readonly SandboxRecord[] {
    return this.#rows.size === 0 ? [] : this.#sorted((atMs) => atMs > nowMs).slice(0, limit);
  }

  #sorted(isMeant: (atMs: number) => boolean): SandboxRecord[] {
    const found: SandboxRecord[] = [];
    for (const { record } of this.#rows) if (isMeant(this.#timeOf(record))) found.push(record);
    return found.sort((a, b) => this.#timeOf(a) - this.#timeOf(b));
  }
}

/** Rows by the workers that hold something of them: an execution that has not ended, or a frozen one. */
export class PlaceIndex {
  readonly #byWorker = new Map<WorkerId, Map<SandboxRow, number>>();
  readonly #load = new Map<WorkerId, number>();

  /** Must be called after each change of a row, with what it was before. */
  file(before: SandboxRecord | undefined, row: SandboxRow): void {
    const { record } = row;
    this.#move(row, before && runsOn(before), runsOn(record));
    this.#move(row, before && frozenOn(before), frozenOn(record));
  }

  on(workerId: WorkerId): readonly SandboxRecord[] {
    return [...(this.#byWorker.get(workerId)?.keys() ?? [])].map(({ record }) => record);
  }

  /** How many executions each worker holds, as they are now; none of 0. */
  load(): ReadonlyMap<WorkerId, number> {
    return new Map(this.#load);
  }

  #move(row: SandboxRow, from: WorkerId | undefined, to: WorkerId | undefined): void {
    if (from === to) return;
    if (from !== undefined) this.#count(from, row, -1);
    if (to !== undefined) this.#count(to, row, 1);
  }

  #count(workerId: WorkerId, row: SandboxRow, by: number): void {
    const rows = this.#byWorker.get(workerId) ?? new Map<SandboxRow, number>();
    this.#byWorker.set(workerId, rows);
    addTo(rows, row, by);
    addTo(this.#load, workerId, by);
  }
}

function runsOn({ execution }: SandboxRecord): WorkerId | undefined {
  return execution.state === "ended" ? undefined : execution.identity.placement.workerId;
}

function frozenOn({ snapshot }: SandboxRecord): WorkerId | undefined {
  return snapshot?.frozenOn ?? undefined;
}

/** An entry that comes to nothing is taken out. */
function addTo<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
