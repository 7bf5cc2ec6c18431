// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { TenantId, TenantKeyId } from "./ids.ts";
import type { Secret } from "./secret.ts";

/** One version of a tenant's key, in the clear. Everything of that tenant's snapshots is named and sealed with it. */
export interface TenantKey {
  readonly tenantId: TenantId;
  readonly keyId: TenantKeyId;
  /** 32 random bytes. */
  readonly secret: Secret<Uint8Array>;
}
