// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId } from "../ids.ts";
import type { RuntimeRecord } from "../record.ts";
import type { KeyBundleStore } from "./key-bundle-store.ts";

/**
 * The worker's durable runtime records. A change is synced to disk before it returns. Reads are local and
 * synchronous, because every request is compared with the present record. One writer process; a second is refused.
 */
export interface RuntimeRecordStore extends KeyBundleStore {
  read(sandboxId: SandboxId): RuntimeRecord | undefined;
  all(): readonly RuntimeRecord[];
  /** Writes `next` if the stored record is still `expected` (by epoch, state and identity; undefined: absent). Returns whether it won. */
  replace(expected: RuntimeRecord | undefined, next: RuntimeRecord): boolean;
  /** Forgets the oldest tombstones beyond `keepRetired`; never an installed record. Returns how many. */
  prune(keepRetired: number): number;
  /** The highest position of the feed ever noted here; 0 for none. */
  readonly feedPosition: number;
  /** Noted before what is at that position is applied, and durable no later than the next write of a record, or {@link syncFeedPosition}. */
  noteFeedPosition(position: number): void;
  /** Returns when what was noted is durable. */
  syncFeedPosition(): void;
  close(): void;
}
