// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ArchiveStore, ByteStore, ObjectStore, Random, TenantKey } from "@space/model";
import { KnownNames } from "./known-names.ts";
import { type ArchiveOptions, tenantArchives } from "./tenant-archives.ts";
import { TenantObjects } from "./tenant-objects.ts";

/** What one tenant's snapshots are kept in, for as long as its key is held. */
export interface TenantSnapshots {
  /** Signed statements by their digests, sealed like chunks. */
  readonly objects: ObjectStore;
  readonly archives: ArchiveStore;
}

export interface SnapshotStore {
  /** No request to the store, and nothing that outlives the answer. */
  open(key: TenantKey): TenantSnapshots;
}

/** Sealed, deduplicated snapshots in any store of bytes. */
export function snapshotStore(
  ports: { readonly store: ByteStore; readonly random: Random },
  options: ArchiveOptions = {},
): SnapshotStore {
  const known = new KnownNames();
  return {
    open(key) {
      const objects = new TenantObjects(key, { ...ports, known });
      return { objects, archives: tenantArchives(objects, options) };
    },
  };
}
