// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type KeptSnapshot,
  type ListKeptSnapshots,
  type NewSandbox,
  type SandboxRecord,
  type SnapshotId,
  SpaceError,
  type TenantId,
} from "@space/model";

/** The snapshots that are kept apart from their sandboxes, with every rule of the real store. */
export class MemoryKeptSnapshots {
  readonly #kept = new Map<SnapshotId, KeptSnapshot>();
  readonly #sandboxes: () => readonly SandboxRecord[];

  constructor(sandboxes: () => readonly SandboxRecord[]) {
    this.#sandboxes = sandboxes;
  }

  /** What had its name is released. */
  keep(kept: KeptSnapshot): void {
    if (kept.memory === "frozen-on-worker" || this.#kept.has(kept.snapshotId))
      throw new SpaceError("internal/bug", { where: "store constraint" });
    for (const other of this.#kept.values())
      if (kept.name !== null && other.tenantId === kept.tenantId && other.name === kept.name)
        this.#set({ ...other, name: null, heldUntilMs: 0 });
    this.#set(kept);
  }

  mayBeginWith({ tenantId, origin }: NewSandbox): boolean {
    if (origin === undefined) return true;
    const found = this.find(tenantId, origin.snapshotId);
    return found !== undefined && found.digest === origin.parentManifest && found.heldUntilMs !== 0;
  }

  find(tenantId: TenantId, snapshotId: SnapshotId): KeptSnapshot | undefined {
    const found = this.#kept.get(snapshotId);
    return found?.tenantId === tenantId ? found : undefined;
  }

  list(tenantId: TenantId, { sandboxId, name, limit, after }: ListKeptSnapshots): readonly KeptSnapshot[] {
    return this.#of(tenantId)
      .filter((kept) => kept.heldUntilMs === null)
      .filter((kept) => sandboxId === undefined || kept.sandboxId === sandboxId)
      .filter((kept) => name === undefined || kept.name === name)
      .toSorted((a, b) => -order(a, b))
      .filter((kept) => after === undefined || order(kept, after) < 0)
      .slice(0, limit);
  }

  release(tenantId: TenantId, snapshotId: SnapshotId): boolean {
    const found = this.find(tenantId, snapshotId);
    if (found === undefined || found.heldUntilMs === 0) return false;
    this.#set({ ...found, name: null, heldUntilMs: 0 });
    return true;
  }

  needed(
    tenantId: TenantId,
    { after, limit }: { readonly after: SnapshotId | null; readonly limit: number },
  ): readonly KeptSnapshot[] {
    return this.#of(tenantId)
      .filter(({ snapshotId }) => after === null || snapshotId > after)
      .toSorted((a, b) => (a.snapshotId < b.snapshotId ? -1 : 1))
      .slice(0, limit);
  }

  purge(nowMs: number, limit: number): number {
    const over = [...this.#kept.values()].filter(({ heldUntilMs }) => (heldUntilMs ?? nowMs + 1) <= nowMs);
    if (over.length === 0) return 0;
    const begunWith = new Set(
      this.#sandboxes().flatMap(({ state, origin }) =>
        state === "creating" && origin ? [origin.snapshotId] : [],
      ),
    );
    const removed = over.filter(({ snapshotId }) => !begunWith.has(snapshotId)).slice(0, limit);
    for (const { snapshotId } of removed) this.#kept.delete(snapshotId);
    return removed.length;
  }

  #of(tenantId: TenantId): readonly KeptSnapshot[] {
    return [...this.#kept.values()].filter((kept) => kept.tenantId === tenantId);
  }

  #set(kept: KeptSnapshot): void {
    this.#kept.set(kept.snapshotId, kept);
  }
}

type Position = Pick<KeptSnapshot, "createdAtMs" | "snapshotId">;

function order(a: Position, b: Position): number {
  return (
    a.createdAtMs - b.createdAtMs || (a.snapshotId < b.snapshotId ? -1 : a.snapshotId > b.snapshotId ? 1 : 0)
  );
}
