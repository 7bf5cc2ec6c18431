// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ByteStore, Random, SnapshotStore } from "@space/model";
import { KnownNames } from "./known-names.ts";
import { type ArchiveOptions, tenantArchives } from "./tenant-archives.ts";
import { TenantObjects } from "./tenant-objects.ts";

/** Sealed, deduplicated snapshots in any store of bytes. */
export function snapshotStore(
  ports: { readonly store: ByteStore; readonly random: Random },
  options: ArchiveOptions = {},
): SnapshotStore {
  const known = new KnownNames();
  return {
    open(key, peers = {}) {
      const objects = new TenantObjects(key, { ...ports, known, ...peers });
      return { objects, archives: tenantArchives(objects, options) };
    },
  };
}
