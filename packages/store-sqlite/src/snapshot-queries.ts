// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  parseDigest,
  parseSandboxId,
  type SandboxId,
  type SandboxRecord,
  type StoredSnapshot,
  type TenantId,
} from "@space/model";
import type { Statements } from "./database.ts";
import { integer, text } from "./row.ts";

/** See `SandboxStore.snapshots`. */
export function newestSnapshots(
  statements: Statements,
  tenantId: TenantId,
  { after, limit }: { readonly after: SandboxId | null; readonly limit: number },
): readonly StoredSnapshot[] {
  const rows = statements.all(
    `SELECT s.sandbox_id, m.digest, m.countersigned FROM sandboxes s
      JOIN manifests m ON m.sandbox_id = s.sandbox_id AND m.digest = s.manifest_head
      WHERE s.tenant_id = :tenantId AND s.manifest_head IS NOT NULL AND s.state <> 'killing' AND s.sandbox_id > :after
      ORDER BY s.sandbox_id LIMIT :limit`,
    { tenantId, after: after ?? "", limit },
  );
  return rows.map((row) => ({
    sandboxId: parseSandboxId(text(row, "sandbox_id")),
    digest: parseDigest(text(row, "digest")),
    countersigned: text(row, "countersigned"),
  }));
}

export function pausingSandboxes(
  statements: Statements,
  tenantId: TenantId,
): readonly Pick<SandboxRecord, "sandboxId" | "revision">[] {
  const rows = statements.all(
    "SELECT sandbox_id, revision FROM sandboxes WHERE tenant_id = :tenantId AND state = 'pausing'",
    { tenantId },
  );
  return rows.map((row) => ({
    sandboxId: parseSandboxId(text(row, "sandbox_id")),
    revision: integer(row, "revision"),
  }));
}
