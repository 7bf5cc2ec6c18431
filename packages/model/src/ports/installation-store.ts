// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, TenantId } from "../ids.ts";

export interface TenantRecord {
  readonly tenantId: TenantId;
  /** Unique. */
  readonly name: string;
  /** Sandboxes that may run at once. */
  readonly sandboxLimit: number;
  readonly createdAtMs: number;
}

/** An API key at rest: who it speaks for and the SHA-256 of its text, never the text. */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly tenantId: TenantId;
  readonly hash: Digest;
  readonly createdAtMs: number;
}

/**
 * What an installation holds besides sandboxes: tenants, their API keys, template names. Writes are durable
 * before they resolve. May be called concurrently. Throws `store/failed`.
 */
export interface InstallationStore {
  /** False: the name is taken. */
  addTenant(tenant: TenantRecord): Promise<boolean>;
  findTenant(name: string): Promise<TenantRecord | undefined>;
  addApiKey(key: ApiKeyRecord): Promise<void>;
  /** Of keys that are not revoked. */
  findApiKey(hash: Digest): Promise<ApiKeyRecord | undefined>;
  /** Whether it was there and not yet revoked. */
  revokeApiKey(keyId: string, atMs: number): Promise<boolean>;
  /** The template that a name means to a tenant: its own alias first, else everyone's. */
  findTemplate(tenantId: TenantId, alias: string): Promise<string | undefined>;
}
