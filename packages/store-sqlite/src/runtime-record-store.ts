// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import {
  type ActivationId,
  type ActivationRecord,
  type ActivationStore,
  compareIdentity,
  identityToJson,
  parseSandboxId,
  parseStoreSuccession,
  parseWorkerId,
  type RuntimeRecord,
  type RuntimeRecordStore,
  type SandboxId,
  SpaceError,
  type StoreSuccession,
  type SuccessionStore,
  type WorkerId,
} from "@space/model";
import { ActivationIndex } from "./activation-index.ts";
import { openExclusive } from "./exclusive-database.ts";
import { activationToRow, type Row, recordToRow, rowToActivation, rowToRecord } from "./worker-rows.ts";
import { workerSchema } from "./worker-schema.ts";

const recordColumns =
  "sandbox_id, generation, attempt, activation_id, identity, state, certificate, certificate_digest, epoch, host_boot_id, evidence";
const retiredOrder =
  "CASE :state WHEN 'retired' THEN (SELECT coalesce(max(retired_order), 0) + 1 FROM runtime_record WHERE state = 'retired') END";
const activationColumns =
  "activation_id, sandbox_id, generation, identity, phase, started_as, private_key, public_key, activation_secret, template, variables, evidence, restored_from, memory, manifest";

const named = (columns: string): string => columns.replaceAll(/\w+/g, ":$&");
const assigned = (columns: string): string => columns.replaceAll(/\w+/g, "$& = :$&");

const sql = {
  insertRecord: `INSERT INTO runtime_record (${recordColumns}, retired_order)
    VALUES (${named(recordColumns)}, ${retiredOrder}) ON CONFLICT (sandbox_id) DO NOTHING`,
  updateRecord: `UPDATE runtime_record SET ${assigned(recordColumns)}, retired_order = ${retiredOrder}
    WHERE sandbox_id = :sandbox_id AND epoch = :old_epoch AND state = :old_state AND identity = :old_identity`,
  prune: `DELETE FROM runtime_record WHERE state = 'retired' AND sandbox_id IN (
    SELECT sandbox_id FROM runtime_record WHERE state = 'retired' ORDER BY retired_order DESC LIMIT -1 OFFSET :keep)
    RETURNING sandbox_id`,
  writeBundle: `INSERT INTO key_bundle (one, version, token) VALUES (1, :version, :token)
    ON CONFLICT (one) DO UPDATE SET version = excluded.version, token = excluded.token WHERE version < excluded.version`,
  noteFeedPosition: `INSERT INTO feed_position (one, position) VALUES (1, :position)
    ON CONFLICT (one) DO UPDATE SET position = excluded.position WHERE position < excluded.position`,
  syncFeedPosition: "UPDATE feed_position SET position = position",
  beginSuccession: `INSERT INTO store_succession (one, next) VALUES (1, :next)
    ON CONFLICT (one) DO UPDATE SET next = coalesce(next, excluded.next) RETURNING held, next`,
  finishSuccession: "UPDATE store_succession SET held = next, next = NULL WHERE next = :next",
  writeActivation: `INSERT INTO activation (${activationColumns}) VALUES (${named(activationColumns)})
    ON CONFLICT (activation_id) DO UPDATE SET ${assigned(activationColumns)}`,
  removeActivation: "DELETE FROM activation WHERE activation_id = :id",
} as const;

type Statements = { readonly [Name in keyof typeof sql]: StatementSync };

/**
 * A worker's durable memory in one SQLite file: runtime records, key bundle and its own processes. Every write of
 * a record or a bundle is synced before it returns; every read is from memory, which only this process changes. The file holds the private
 * keys of executions and is readable by its owner alone.
 */
export class SqliteWorkerStore implements RuntimeRecordStore, ActivationStore, SuccessionStore {
  /** The worker that this store makes: a lost store is a new worker. */
  readonly workerId: WorkerId;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #records = new Map<SandboxId, RuntimeRecord>();
  readonly #activations = new ActivationIndex();
  #feedPosition = 0;
  /** Whether the position that was noted last may not be on the disk yet. */
  #feedPositionUnsynced = false;
  #bundle: { readonly version: number; readonly token: string } | undefined;

  /**
   * Opens or makes the store; `newWorkerId` names the worker when it is made. Throws `data/in-use` while another process
   * has it open, `store/failed` when it cannot be read.
   */
  constructor(path: string, newWorkerId: () => WorkerId) {
    this.#database = openExclusive(path, workerSchema);
    try {
      this.#statements = prepareAll(this.#database);
      this.workerId = this.#readOwner(newWorkerId);
      this.#load();
    } catch (cause) {
      this.#database.close();
      throw cause instanceof SpaceError ? cause : new SpaceError("store/failed", { step: "load" }, { cause });
    }
  }

  read(sandboxId: SandboxId): RuntimeRecord | undefined {
    return this.#records.get(sandboxId);
  }

  all(): readonly RuntimeRecord[] {
    return [...this.#records.values()];
  }

  replace(expected: RuntimeRecord | undefined, next: RuntimeRecord): boolean {
    if (expected !== undefined && compareIdentity(expected.identity, next.identity) === "other-sandbox")
      return false;
    const row = recordToRow(next);
    const changes = this.#write("replace", () =>
      expected === undefined
        ? this.#statements.insertRecord.run(row)
        : this.#statements.updateRecord.run({
            ...row,
            old_epoch: expected.epoch,
            old_state: expected.state,
            old_identity: JSON.stringify(identityToJson(expected.identity)),
          }),
    );
    if (changes !== 1) return false;
    this.#records.set(next.identity.sandboxId, Object.freeze({ ...next }));
    return true;
  }

  prune(keepRetired: number): number {
    const forgotten = this.#attempt("prune", () => this.#statements.prune.all({ keep: keepRetired }));
    for (const row of forgotten) this.#records.delete(parseSandboxId(row["sandbox_id"]));
    return forgotten.length;
  }

  readBundle(): { readonly version: number; readonly token: string } | undefined {
    return this.#bundle;
  }

  writeBundle(version: number, token: string): boolean {
    const changes = this.#write("bundle", () => this.#statements.writeBundle.run({ version, token }));
    if (changes !== 1) return false;
    this.#bundle = Object.freeze({ version, token });
    return true;
  }

  get feedPosition(): number {
    return this.#feedPosition;
  }

  noteFeedPosition(position: number): void {
    if (position <= this.#feedPosition) return;
    this.#unsynced(() => this.#statements.noteFeedPosition.run({ position }));
    this.#feedPosition = position;
    this.#feedPositionUnsynced = true;
  }

  syncFeedPosition(): void {
    if (this.#feedPositionUnsynced)
      this.#write("feed position", () => this.#statements.syncFeedPosition.run());
  }

  beginSuccession(newToken: () => string): StoreSuccession {
    const row = this.#attempt("succession", () => this.#statements.beginSuccession.get({ next: newToken() }));
    return parseStoreSuccession({ ...row });
  }

  finishSuccession({ next }: StoreSuccession): void {
    this.#write("succession", () => this.#statements.finishSuccession.run({ next }));
  }

  readActivation(id: ActivationId): ActivationRecord | undefined {
    return this.#activations.get(id);
  }

  allActivations(): readonly ActivationRecord[] {
    return this.#activations.all();
  }

  activationsOf(sandboxId: SandboxId): readonly ActivationRecord[] {
    return this.#activations.of(sandboxId);
  }

  get activationCount(): number {
    return this.#activations.size;
  }

  writeActivation(activation: ActivationRecord): void {
    this.#unsynced(() => this.#statements.writeActivation.run(activationToRow(activation)));
    this.#activations.set(Object.freeze({ ...activation }));
  }

  continueActivation(from: ActivationId, next: ActivationRecord): void {
    this.#unsynced(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        this.#statements.removeActivation.run({ id: from });
        this.#statements.writeActivation.run(activationToRow(next));
        this.#database.exec("COMMIT");
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    });
    this.#activations.delete(from);
    this.#activations.set(Object.freeze({ ...next }));
  }

  removeActivation(id: ActivationId): void {
    this.#unsynced(() => this.#statements.removeActivation.run({ id }));
    this.#activations.delete(id);
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #readOwner(newWorkerId: () => WorkerId): WorkerId {
    const found = this.#database.prepare("SELECT worker_id FROM store_owner").get();
    if (found !== undefined) return parseWorkerId(found["worker_id"]);
    const workerId = newWorkerId();
    this.#database.prepare("INSERT INTO store_owner (one, worker_id) VALUES (1, ?)").run(workerId);
    return workerId;
  }

  #load(): void {
    for (const row of readAll(this.#database, "SELECT * FROM runtime_record")) {
      const record = rowToRecord(row);
      this.#records.set(record.identity.sandboxId, record);
    }
    for (const row of readAll(this.#database, "SELECT * FROM activation")) {
      this.#activations.set(rowToActivation(row));
    }
    this.#feedPosition = Number(
      this.#database.prepare("SELECT position FROM feed_position").get()?.["position"] ?? 0,
    );
    const bundle = this.#database.prepare("SELECT version, token FROM key_bundle").get();
    if (bundle === undefined) return;
    this.#bundle = Object.freeze({ version: Number(bundle["version"]), token: String(bundle["token"]) });
  }

  /**
   * Commits without waiting for the disk: an end of this process loses nothing, and an end of the host takes the
   * processes described with it. The write-ahead log keeps the order, so the next synced write carries it along.
   */
  #unsynced(action: () => unknown): void {
    this.#attempt("activation", () => {
      this.#database.exec("PRAGMA synchronous = NORMAL");
      try {
        action();
      } finally {
        this.#database.exec("PRAGMA synchronous = FULL");
      }
    });
  }

  /** Returns the number of rows changed. */
  #write(step: string, action: () => { readonly changes: number | bigint }): number {
    const changes = Number(this.#attempt(step, action).changes);
    if (changes > 0) this.#feedPositionUnsynced = false; // the log has carried it along
    return changes;
  }

  /** What the database refuses becomes `store/failed`; a broken rule of the schema names itself in the cause. */
  #attempt<T>(step: string, action: () => T): T {
    try {
      return action();
    } catch (cause) {
      throw new SpaceError("store/failed", { step }, { cause });
    }
  }
}

function prepareAll(database: DatabaseSync): Statements {
  const prepare = (name: keyof typeof sql): StatementSync => database.prepare(sql[name]);
  return {
    insertRecord: prepare("insertRecord"),
    updateRecord: prepare("updateRecord"),
    prune: prepare("prune"),
    writeBundle: prepare("writeBundle"),
    noteFeedPosition: prepare("noteFeedPosition"),
    syncFeedPosition: prepare("syncFeedPosition"),
    beginSuccession: prepare("beginSuccession"),
    finishSuccession: prepare("finishSuccession"),
    writeActivation: prepare("writeActivation"),
    removeActivation: prepare("removeActivation"),
  };
}

function readAll(database: DatabaseSync, query: string, ...values: SQLInputValue[]): readonly Row[] {
  const statement = database.prepare(query);
  statement.setReadBigInts(true);
  return statement.all(...values);
}
