// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { SpaceError } from "@space/model";
import { openExclusive } from "./exclusive-database.ts";
import type { Row } from "./row.ts";

/** Distinct statements kept prepared. The adapters have a fixed set, and list filters a bounded one. */
const statementLimit = 200;

/**
 * SQLite's own page cache of 2 MiB holds some hundred sandboxes; beyond it each read costs system calls. Savepoints keep
 * their journal in memory. The log is folded in every 16 MiB, because a page that changed often is then written once.
 */
const settings = "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000;";

export type Parameters = Readonly<Record<string, SQLInputValue>>;

/** Statements against one connection. */
export interface Statements {
  all(sql: string, parameters?: Parameters): Row[];
  get(sql: string, parameters?: Parameters): Row | undefined;
  /** How many rows it changed. */
  run(sql: string, parameters?: Parameters): number;
}

interface WaitingWrite {
  readonly work: (statements: Statements) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The control plane's connection. WAL with `synchronous=FULL`: a write is on the disk before its promise
 * resolves. Writes that are asked for in one turn of the event loop share one transaction and so one sync; each has its
 * own savepoint, so that one that throws leaves no trace and harms no other.
 */
export class Database implements Statements {
  readonly #connection: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #waiting: WaitingWrite[] = [];
  #scheduled = false;
  #closed = false;

  private constructor(connection: DatabaseSync) {
    this.#connection = connection;
  }

  /**
   * Opens or makes the file and holds it: a second process (or a second call) is refused with `data/in-use`.
   * Throws `store/failed`.
   */
  static open(path: string): Database {
    return new Database(openExclusive(path, settings));
  }

  all(sql: string, parameters: Parameters = {}): Row[] {
    return attempt("read", () => this.#prepare(sql).all(parameters));
  }

  get(sql: string, parameters: Parameters = {}): Row | undefined {
    return attempt("read", () => this.#prepare(sql).get(parameters));
  }

  run(sql: string, parameters: Parameters = {}): number {
    return attempt("write", () => Number(this.#prepare(sql).run(parameters).changes));
  }

  /** Several statements at once, outside any transaction: for opening. */
  script(sql: string): void {
    attempt("schema", () => this.#connection.exec(sql));
  }

  /** Runs `work` in a transaction; resolves with its value once it is durable. It must not wait for anything. */
  write<T>(work: (statements: Statements) => T): Promise<T> {
    if (this.#closed) return Promise.reject(new SpaceError("store/failed", { step: "closed" }));
    return new Promise<T>((resolve, reject) => {
      const settle = resolve as (value: unknown) => void; // cast: called with what this very `work` returned
      this.#waiting.push({ work, resolve: settle, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    });
  }

  /** Writes what waits, and closes. Repeating it does nothing. */
  close(): void {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    this.#statements.clear();
    this.#connection.close();
  }

  #flush(): void {
    this.#scheduled = false;
    const batch = this.#waiting.splice(0);
    if (batch.length === 0 || this.#closed) return;
    const settled: (() => void)[] = [];
    try {
      this.run("BEGIN IMMEDIATE");
      for (const write of batch) settled.push(this.#attemptWrite(write));
      this.run("COMMIT");
    } catch (error) {
      this.#abandon();
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const settle of settled) settle();
  }

  /** Runs one write inside the open transaction. What it returns is called after the commit. */
  #attemptWrite(write: WaitingWrite): () => void {
    this.run("SAVEPOINT one");
    try {
      const value = write.work(this);
      this.run("RELEASE one");
      return () => write.resolve(value);
    } catch (error) {
      this.run("ROLLBACK TO one");
      this.run("RELEASE one");
      return () => write.reject(error);
    }
  }

  #abandon(): void {
    try {
      if (this.#connection.isTransaction) this.run("ROLLBACK");
    } catch {
      /* the failed write is reported already */
    }
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= statementLimit) this.#statements.clear();
    const statement = this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

const constraint = 19;

/** The primary result code of SQLite, or undefined when the error is not SQLite's. */
function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number")
    return undefined;
  return error.errcode & 0xff;
}

/** A violated constraint is a bug of the use-case; anything else of SQLite is a store that cannot answer. */
function attempt<T>(step: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    const code = sqliteCode(cause);
    if (code === undefined) throw cause;
    if (code === constraint) throw new SpaceError("internal/bug", { where: "store constraint" }, { cause });
    throw new SpaceError("store/failed", { step }, { cause });
  }
}
