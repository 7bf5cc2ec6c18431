// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  BeginOutcome,
  ChainLinks,
  ChangeOutcome,
  ChangeRequest,
  Clock,
  Digest,
  ListSandboxes,
  NewSandbox,
  PendingQuery,
  PendingSideEffect,
  SandboxId,
  SandboxRecord,
  SandboxStore,
  SealedSegment,
  SideEffect,
  StoredChain,
  StoredManifest,
  StoredSnapshot,
  TenantId,
  WorkerId,
} from "@space/model";
import type { Database } from "./database.ts";
import { SqliteKeptSnapshots } from "./kept-snapshots.ts";
import { pendingEffects, postponeEffect, writeEffects } from "./outbox.ts";
import { text } from "./row.ts";
import { beginSandbox } from "./sandbox-begin.ts";
import { applyChange } from "./sandbox-changes.ts";
import {
  abandonedSandboxes,
  dueSandboxes,
  listSandboxes,
  liveSandboxes,
  recoverableSandboxes,
  sandboxesOnWorker,
  workerLoad,
} from "./sandbox-queries.ts";
import { sandboxById } from "./sandbox-rows.ts";
import { linksOf, segmentsOf } from "./sealed-segments.ts";
import { newestSnapshots, pausingSandboxes } from "./snapshot-queries.ts";

/** {@link SandboxStore} over SQLite. Reads are answered at once; writes share transactions (see {@link Database}). */
export class SqliteSandboxStore extends SqliteKeptSnapshots implements SandboxStore {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    super(database);
    this.#database = database;
    this.#clock = clock;
  }

  async read(sandboxId: SandboxId): Promise<SandboxRecord | undefined> {
    return sandboxById(this.#database, sandboxId);
  }

  async list(tenantId: TenantId, query: ListSandboxes): Promise<readonly SandboxRecord[]> {
    return listSandboxes(this.#database, tenantId, query);
  }

  begin(sandbox: NewSandbox): Promise<BeginOutcome> {
    return this.#database.write((statements) => beginSandbox(statements, sandbox));
  }

  change(request: ChangeRequest): Promise<ChangeOutcome> {
    const nowMs = this.#clock.wallMs();
    return this.#database.write((statements) => applyChange(statements, request, nowMs));
  }

  async due(nowMs: number, limit: number): Promise<readonly SandboxRecord[]> {
    return dueSandboxes(this.#database, nowMs, limit);
  }

  async abandoned(nowMs: number, limit: number): Promise<readonly SandboxRecord[]> {
    return abandonedSandboxes(this.#database, nowMs, limit);
  }

  async recoverable(nowMs: number, limit: number): Promise<readonly SandboxRecord[]> {
    return recoverableSandboxes(this.#database, nowMs, limit);
  }

  async onWorker(workerId: WorkerId): Promise<readonly SandboxRecord[]> {
    return sandboxesOnWorker(this.#database, workerId);
  }

  async live(): Promise<readonly SandboxRecord[]> {
    return liveSandboxes(this.#database);
  }

  async load(): Promise<ReadonlyMap<WorkerId, number>> {
    return workerLoad(this.#database);
  }

  async manifest(sandboxId: SandboxId, digest: Digest): Promise<StoredManifest | undefined> {
    const row = this.#database.get(
      `SELECT m.countersigned, e.public_key FROM manifests m JOIN executions e USING (sandbox_id, generation)
        WHERE m.digest = :digest AND m.sandbox_id = :sandboxId`,
      { digest, sandboxId },
    );
    if (row === undefined) return undefined;
    return { countersigned: text(row, "countersigned"), executionPublicKey: text(row, "public_key") };
  }

  async chain(sandboxId: SandboxId): Promise<StoredChain> {
    const certificates = this.#database.all(
      "SELECT token FROM certificates WHERE sandbox_id = :sandboxId ORDER BY generation DESC",
      { sandboxId },
    );
    const manifests = this.#database.all(
      "SELECT countersigned FROM manifests WHERE sandbox_id = :sandboxId ORDER BY generation DESC",
      { sandboxId },
    );
    return {
      certificates: certificates.map((row) => text(row, "token")),
      manifests: manifests.map((row) => text(row, "countersigned")),
    };
  }

  async links(
    sandboxId: SandboxId,
    range: { readonly after: bigint; readonly through: bigint },
  ): Promise<ChainLinks> {
    return linksOf(this.#database, sandboxId, range);
  }

  async segments(sandboxId: SandboxId, limit: number): Promise<readonly SealedSegment[]> {
    return segmentsOf(this.#database, sandboxId, limit);
  }

  async snapshots(
    tenantId: TenantId,
    page: { readonly after: SandboxId | null; readonly limit: number },
  ): Promise<readonly StoredSnapshot[]> {
    return newestSnapshots(this.#database, tenantId, page);
  }

  async pausing(tenantId: TenantId): Promise<readonly Pick<SandboxRecord, "sandboxId" | "revision">[]> {
    return pausingSandboxes(this.#database, tenantId);
  }

  enqueue(effects: readonly SideEffect[]): Promise<readonly PendingSideEffect[]> {
    return this.#database.write((statements) => writeEffects(statements, effects));
  }

  async pending(query: PendingQuery): Promise<readonly PendingSideEffect[]> {
    return pendingEffects(this.#database, query);
  }

  postpone(id: number, notBeforeMs: number): Promise<void> {
    return this.#database.write((statements) => postponeEffect(statements, id, notBeforeMs));
  }

  purge(beforeMs: number, limit: number): Promise<number> {
    return this.#database.write((statements) =>
      statements.run(
        `DELETE FROM sandboxes WHERE sandbox_id IN (
          SELECT s.sandbox_id FROM sandboxes s WHERE s.state IN ('killed', 'failed') AND s.changed_at_ms < :beforeMs
            AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.sandbox_id = s.sandbox_id) LIMIT :limit)`,
        { beforeMs, limit },
      ),
    );
  }
}
