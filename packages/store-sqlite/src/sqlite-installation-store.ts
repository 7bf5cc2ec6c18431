// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiKeyRecord,
  type Digest,
  type InstallationStore,
  parseDigest,
  parseTenantId,
  type TenantId,
  type TenantRecord,
} from "@space/model";
import type { Database } from "./database.ts";
import { integer, text } from "./row.ts";

/** {@link InstallationStore} over SQLite. */
export class SqliteInstallationStore implements InstallationStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  addTenant(tenant: TenantRecord): Promise<boolean> {
    return this.#database.write((statements) => {
      const written = statements.run(
        `INSERT INTO tenants (tenant_id, name, sandbox_limit, created_at_ms)
          VALUES (:tenantId, :name, :sandboxLimit, :createdAtMs) ON CONFLICT (name) DO NOTHING`,
        { ...tenant },
      );
      return written === 1;
    });
  }

  async findTenant(name: string): Promise<TenantRecord | undefined> {
    const row = this.#database.get("SELECT * FROM tenants WHERE name = :name", { name });
    if (row === undefined) return undefined;
    return {
      tenantId: parseTenantId(text(row, "tenant_id")),
      name: text(row, "name"),
      sandboxLimit: integer(row, "sandbox_limit"),
      createdAtMs: integer(row, "created_at_ms"),
    };
  }

  async addApiKey(key: ApiKeyRecord): Promise<void> {
    await this.#database.write((statements) =>
      statements.run(
        `INSERT INTO api_keys (key_id, tenant_id, hash, created_at_ms)
          VALUES (:keyId, :tenantId, :hash, :createdAtMs)`,
        { ...key },
      ),
    );
  }

  async findApiKey(hash: Digest): Promise<ApiKeyRecord | undefined> {
    const row = this.#database.get(
      "SELECT key_id, tenant_id, hash, created_at_ms FROM api_keys WHERE hash = :hash AND revoked_at_ms IS NULL",
      { hash },
    );
    if (row === undefined) return undefined;
    return {
      keyId: text(row, "key_id"),
      tenantId: parseTenantId(text(row, "tenant_id")),
      hash: parseDigest(text(row, "hash")),
      createdAtMs: integer(row, "created_at_ms"),
    };
  }

  revokeApiKey(keyId: string, atMs: number): Promise<boolean> {
    return this.#database.write((statements) => {
      const written = statements.run(
        "UPDATE api_keys SET revoked_at_ms = :atMs WHERE key_id = :keyId AND revoked_at_ms IS NULL",
        { keyId, atMs },
      );
      return written === 1;
    });
  }

  async findTemplate(tenantId: TenantId, alias: string): Promise<string | undefined> {
    const row = this.#database.get(
      `SELECT template FROM template_aliases WHERE alias = :alias AND tenant_id IN (:tenantId, '')
        ORDER BY tenant_id DESC LIMIT 1`,
      { tenantId, alias },
    );
    return row === undefined ? undefined : text(row, "template");
  }
}
