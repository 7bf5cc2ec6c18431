// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditEventName,
  type AuditFields,
  type AuditSink,
  type CheckpointSigner,
  type Clock,
  type Random,
  redactAuditFields,
} from "@space/model";
import { lineLimitBytes } from "./audit-record.ts";
import { type AuditLogLimits, defaultAuditLogLimits } from "./limits.ts";
import { LogWriter } from "./log-writer.ts";
import { recoverLog } from "./recover.ts";
import { DirectoryLogFiles, type LogFiles } from "./segment-files.ts";

export interface AuditLogOptions {
  readonly directory: string;
  /** Who writes: `control-plane`, or a worker's id. */
  readonly process: string;
  readonly limits?: Partial<AuditLogLimits>;
}

export interface AuditLogPorts {
  readonly clock: Clock;
  readonly random: Random;
  /** Absent: the directory's. */
  readonly files?: LogFiles;
}

/**
 * One process's append-only audit log: hash-chained records in segment files, signed checkpoints between them. `record`
 * costs its caller one JSON text and never waits, whatever the disk does. One writer per directory.
 */
export class AuditLog implements AuditSink {
  readonly #writer: LogWriter;
  readonly #clock: Clock;
  readonly #waitingLimit: number;
  readonly #onExit = (): void => this.#writer.writeAtExit();

  private constructor(writer: LogWriter, clock: Clock, waitingLimit: number) {
    this.#writer = writer;
    this.#clock = clock;
    this.#waitingLimit = waitingLimit;
    process.once("exit", this.#onExit);
  }

  /** Goes on with the log in the directory, or begins one. Throws when the directory cannot be read. */
  static open(options: AuditLogOptions, ports: AuditLogPorts): AuditLog {
    const limits = { ...defaultAuditLogLimits, ...options.limits };
    const { clock, random, files = new DirectoryLogFiles(options.directory) } = ports;
    const left = recoverLog(options.directory);
    const log = left.log ?? Buffer.from(random.bytes(16)).toString("hex");
    const { directory, process } = options;
    const writer = new LogWriter({ directory, log, process, limits, left }, { clock, files });
    return new AuditLog(writer, clock, limits.waitingBytes);
  }

  record<N extends AuditEventName>(event: N, fields: AuditFields[N]): void {
    const text = textOf(event, fields);
    if (text.length > lineLimitBytes / 2 || this.#writer.waitingBytes + text.length > this.#waitingLimit) {
      this.#writer.drop();
      return;
    }
    this.#writer.add({ atMs: Math.floor(this.#clock.wallMs()), event, fields: text });
  }

  /** From now on checkpoints are signed; the first one at once. */
  signWith(signer: CheckpointSigner): void {
    this.#writer.signWith(signer);
  }

  /** Events that found no room, and of which the log does not say so yet. */
  get dropped(): number {
    return this.#writer.dropped;
  }

  /** Resolves when everything recorded so far is written and synced, or has been dropped. */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Signs a last checkpoint and closes the files. What is recorded afterwards is lost. */
  async close(): Promise<void> {
    process.off("exit", this.#onExit);
    await this.#writer.close();
  }
}

/** A record that cannot be written as JSON is a bug of its caller, and must not become the caller's failure. */
function textOf(event: string, fields: object): string {
  try {
    return JSON.stringify(redactAuditFields(event, fields));
  } catch {
    return '{"unwritable":true}';
  }
}
