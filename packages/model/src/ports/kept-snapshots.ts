// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ParentOrigin } from "../certificate.ts";
import type { Digest, SandboxId, SnapshotId, TenantId } from "../ids.ts";
import type { MemoryKept } from "../snapshot.ts";
import type { ExecutionLimits } from "./substrate.ts";

/**
 * A snapshot that new sandboxes begin with, taken of one that went on. It is kept apart from that sandbox, whose end it
 * outlives, with all that a restore needs.
 */
export interface KeptSnapshot {
  readonly snapshotId: SnapshotId;
  readonly tenantId: TenantId;
  /** What it was taken of. */
  readonly sandboxId: SandboxId;
  /** Of its manifest. */
  readonly digest: Digest;
  readonly countersigned: string;
  readonly executionPublicKey: string;
  readonly memory: MemoryKept;
  readonly sizeBytes: number;
  /** every object of the chain that is sealed in it. */
  readonly objects: readonly Digest[];
  readonly template: string;
  readonly limits: ExecutionLimits;
  readonly variables: Readonly<Record<string, string>>;
  /** `name:tag`, one of the tenant's at a time: a later snapshot of the same name takes it, and takes its place. */
  readonly name: string | null;
  readonly createdAtMs: number;
  /** Null: until its owner deletes it. Else it is a fork's, found and listed by nobody, and kept until then, or until it is released. */
  readonly heldUntilMs: number | null;
}

/** What a new sandbox begins with. */
export interface SandboxOrigin extends ParentOrigin {
  readonly snapshotId: SnapshotId;
}

export interface ListKeptSnapshots {
  readonly sandboxId?: SandboxId;
  /** `name:tag` */
  readonly name?: string;
  readonly limit: number;
  readonly after?: { readonly createdAtMs: number; readonly snapshotId: SnapshotId };
}

/**
 * Snapshots that are kept apart from their sandboxes. They come with a change of the sandbox that they are of, and go when
 * they are released, or their time is over, and no sandbox is being created from them. Whatever is in here is needed.
 */
export interface KeptSnapshotStore {
  /** Also a fork's, and one that was released and is still needed. Never another tenant's. */
  keptSnapshot(tenantId: TenantId, snapshotId: SnapshotId): Promise<KeptSnapshot | undefined>;
  /** Those that were not taken for a fork nor released, the newest first. */
  listKept(tenantId: TenantId, query: ListKeptSnapshots): Promise<readonly KeptSnapshot[]>;
  /** Found, listed and begun with no more; false for one that is not there or was released before. */
  releaseKept(tenantId: TenantId, snapshotId: SnapshotId): Promise<boolean>;
  /** Every one of a tenant, in the order of their ids: those behind `after`, `limit` at most. */
  neededSnapshots(
    tenantId: TenantId,
    page: { readonly after: SnapshotId | null; readonly limit: number },
  ): Promise<readonly Pick<KeptSnapshot, "snapshotId" | "digest" | "countersigned" | "objects">[]>;
  /** Forgets those that were released, or whose time is over, and that no sandbox is being created from. Returns how many. */
  purgeKept(nowMs: number, limit: number): Promise<number>;
}
