// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId } from "../ids.ts";
import type { RuntimeRecord } from "../record.ts";

/**
 * The worker's durable runtime records. A change is synced to disk before it returns. Reads are local and
 * synchronous, because every request is compared with the present record. One writer process; a second is refused.
 */
export interface RuntimeRecordStore {
  read(sandboxId: SandboxId): RuntimeRecord | undefined;
  all(): readonly RuntimeRecord[];
  /** Writes `next` if the stored record is still `expected` (by epoch, state and identity; undefined: absent). Returns whether it won. */
  replace(expected: RuntimeRecord | undefined, next: RuntimeRecord): boolean;
  /** Forgets the oldest tombstones beyond `keepRetired`; never an installed record. Returns how many. */
  prune(keepRetired: number): number;
  /** The newest verified key bundle, as received. Never replaced by one of a lower version. */
  readBundle(): { readonly version: number; readonly token: string } | undefined;
  writeBundle(version: number, token: string): boolean;
  close(): void;
}
