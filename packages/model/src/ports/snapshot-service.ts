// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SpaceError } from "../errors.ts";
import type { Digest, SandboxId, SnapshotId } from "../ids.ts";
import type { MemoryKept } from "../snapshot.ts";
import type { ApiCaller, ConnectedSandbox } from "./sandbox-service.ts";

/** A kept snapshot as its owner sees it. */
export interface SnapshotView {
  /** What a create takes as its template: `<id>:default`, or its name. */
  readonly template: string;
  readonly snapshotId: SnapshotId;
  /** `namespace/name:tag`, where it has one. */
  readonly names: readonly string[];
  readonly sandboxId: SandboxId;
  readonly digest: Digest;
  readonly memory: MemoryKept;
  readonly sizeBytes: number;
  readonly createdAtMs: number;
}

export interface ListSnapshots {
  readonly sandboxId?: string;
  readonly name?: string;
  readonly limit: number;
  readonly after?: { readonly createdAtMs: number; readonly snapshotId: SnapshotId };
}

export interface ForkSandbox {
  /** 1 to 100. */
  readonly count: number;
  /** Life of each child, from the moment that it runs. */
  readonly timeoutMs: number;
}

/** One child, running; or why there is none. */
export type ForkedSandbox =
  | {
      readonly kind: "sandbox";
      readonly sandbox: ConnectedSandbox;
      /** What it has of its source's memory. */
      readonly memory: MemoryKept;
    }
  | { readonly kind: "failed"; readonly error: SpaceError };

/**
 * Snapshots of what goes on, and sandboxes that begin with them. All throw `sandbox/not-found` for an unknown sandbox and
 * for another tenant's alike, `sandbox/state` for one that does not run, and failures of kind `unavailable` or `exhausted`
 * that may be tried again: then the sandbox runs on.
 */
export interface SnapshotService {
  /**
   * Takes a snapshot; the sandbox stands still meanwhile, and goes on with its end unchanged. It is kept until it is deleted,
   * also when the sandbox is killed. A name that an earlier one has goes over, and the earlier one is deleted.
   */
  snapshot(caller: ApiCaller, sandboxId: SandboxId, name: string | undefined): Promise<SnapshotView>;
  /** The newest first. What is not known has none. */
  listSnapshots(caller: ApiCaller, request: ListSnapshots): Promise<readonly SnapshotView[]>;
  /** By its id or name. Sandboxes that began with it are not touched. Throws `template/not-found`. */
  deleteSnapshot(caller: ApiCaller, template: string): Promise<void>;
  /** One snapshot, and so many new sandboxes that begin with it, each on its own: one that fails fails no other. */
  fork(caller: ApiCaller, sandboxId: SandboxId, request: ForkSandbox): Promise<readonly ForkedSandbox[]>;
}
