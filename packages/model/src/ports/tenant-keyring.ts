// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { TenantId, TenantKeyId } from "../ids.ts";
import type { TenantKey } from "../tenant-key.ts";

/** What wrapping everything anew did. */
export interface Rewrapped {
  readonly rewrapped: number;
  /** Under the newest key already. */
  readonly kept: number;
}

/**
 * The keys that tenants' snapshots are sealed with, each wrapped. The control plane alone holds this; workers get one key
 * for what they do. May be called concurrently. Throws `store/failed`, and what a `KeyWrapping` throws.
 */
export interface TenantKeyring {
  /** The key that seals this tenant's next snapshot; made, and durable, where there is none. */
  current(tenantId: TenantId): Promise<TenantKey>;
  /** The version that a manifest names. Throws `tenant-key/missing`. */
  find(tenantId: TenantId, keyId: TenantKeyId): Promise<TenantKey>;
  /** Every tenant that has a key. */
  tenants(): Promise<readonly TenantId[]>;
  /** Every version that is left, the newest first. */
  versions(tenantId: TenantId): Promise<readonly TenantKeyId[]>;
  /** A new version seals from now on. What earlier ones sealed stays readable. */
  rotate(tenantId: TenantId): Promise<TenantKey>;
  /** Wraps every key under the newest key-encryption key. It may be interrupted and repeated. */
  rewrap(): Promise<Rewrapped>;
}
