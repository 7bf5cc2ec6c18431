// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditEventName, AuditFields, CheckpointSigner, Clock } from "@space/model";
import type { WaitingRecord } from "./audit-record.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { AuditLogLimits } from "./limits.ts";
import type { LeftLog } from "./recover.ts";
import { removalOf } from "./retention.ts";
import type { LogFiles } from "./segment-files.ts";
import { SegmentWriter } from "./segment-writer.ts";

/** Holds the newest checkpoint's token: records that a log lost at its end show by it. */
export const lastCheckpointName = "last-checkpoint";

export interface LogWriterOptions {
  readonly directory: string;
  readonly log: string;
  readonly process: string;
  readonly limits: AuditLogLimits;
  readonly left: LeftLog;
}

/** The one writer of a log: takes what waits, writes it in one go, syncs a little later, and signs at intervals. */
export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #clock: Clock;
  readonly #files: LogFiles;
  readonly #segments: SegmentWriter;
  readonly #checkpoints: Checkpoints;
  #waiting: WaitingRecord[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #running: Promise<void> | undefined;
  #cancelSync: (() => void) | undefined;
  #cancelCheckpoint: (() => void) | undefined;
  #isClosed = false;

  constructor(options: LogWriterOptions, ports: { readonly clock: Clock; readonly files: LogFiles }) {
    const { log, process, left, limits } = options;
    this.#options = options;
    this.#clock = ports.clock;
    this.#files = ports.files;
    this.#segments = new SegmentWriter(left.state, ports.files, () =>
      this.#own("audit/opened", { log, process }),
    );
    this.#checkpoints = new Checkpoints({ log, process }, limits.checkpointRecords);
    const { torn } = left;
    if (torn !== undefined) {
      this.add(this.#own("audit/recovered", { tornBytes: torn.bytes, tornDigest: torn.digest }));
    }
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get dropped(): number {
    return this.#dropped;
  }

  add(record: WaitingRecord): void {
    if (this.#isClosed) return;
    this.#waiting.push(record);
    this.#waitingBytes += record.fields.length;
    this.#run();
  }

  /** The count is recorded as soon as something can be written. */
  drop(): void {
    this.#dropped += 1;
  }

  signWith(signer: CheckpointSigner): void {
    this.#checkpoints.signWith(signer);
    this.#run();
  }

  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    await this.#sync();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#checkpoints.hasUnsigned) this.#checkpoints.ask();
    this.#run();
    this.#isClosed = true;
    await this.settled();
    this.#cancelCheckpoint?.();
    await this.#segments.close().catch(() => undefined); // it was synced, or could not be
  }

  /** By the way that is left; a disk that is full must not hold up the end. */
  writeAtExit(): void {
    if (this.#isClosed) return;
    try {
      this.#segments.writeNow(this.#take());
    } catch {
      // nobody is left to be told
    }
  }

  #run(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined;
    });
  }

  /** Ends when nothing waits, or when the disk refuses; then the next record tries again. */
  async #writeAll(): Promise<void> {
    await Promise.resolve(); // so that what is recorded in one turn is written in one go
    do {
      const taken = this.#take();
      try {
        await this.#write(taken);
      } catch {
        this.#dropped += taken.length; // the disk's state is the operator's to see
        return;
      }
      if (this.#checkpoints.isDue) await this.#checkpoint();
    } while (this.#waiting.length > 0 || this.#checkpoints.isDue);
    this.#cancelSync ??= this.#clock.after(this.#options.limits.syncMs, () => void this.#sync());
    this.#cancelCheckpoint ??= this.#clock.after(this.#options.limits.checkpointMs, () =>
      this.#onCheckpointTime(),
    );
  }

  async #write(taken: readonly WaitingRecord[]): Promise<void> {
    const { limits } = this.#options;
    if (!this.#segments.hasSegment || this.#segments.sizeBytes >= limits.segmentBytes)
      await this.#beginSegment();
    const dropped = this.#dropped;
    const lost = dropped === 0 ? [] : [this.#own("audit/dropped", { count: dropped })];
    if (lost.length + taken.length === 0 && !this.#segments.isHeadless) return; // an empty log cannot be signed
    await this.#segments.append([...lost, ...taken]);
    this.#dropped -= dropped;
    this.#checkpoints.count(lost.length + taken.length);
  }

  /** Followed by the removal of what is too old, which is recorded first. */
  async #beginSegment(): Promise<void> {
    const { directory, limits } = this.#options;
    await this.#segments.beginSegment();
    this.#checkpoints.beginSegment();
    const removal = removalOf(directory, limits.totalBytes);
    if (removal === undefined) return;
    await this.#segments.append([this.#own("audit/trimmed", removal.fields)]);
    await this.#segments.sync();
    for (const name of removal.names) await this.#files.remove(name);
  }

  /** A signer or a disk that fails costs this checkpoint; the next comes at its time. */
  async #checkpoint(): Promise<void> {
    let isSigned = false;
    try {
      let signed = this.#checkpoints.sign(this.#segments.state, this.#clock.wallMs());
      if (signed.witness !== undefined) {
        await this.#segments.append([this.#own("audit/witness", signed.witness)]);
        this.#checkpoints.show(signed.witness);
        signed = this.#checkpoints.sign(this.#segments.state, this.#clock.wallMs());
      }
      await this.#segments.append([this.#own("audit/checkpoint", { token: signed.token })]);
      await this.#segments.sync();
      await this.#files.replace(lastCheckpointName, `${signed.token}\n`);
      isSigned = true;
    } catch {
      // the records stand without it
    } finally {
      this.#checkpoints.settle(isSigned);
    }
  }

  #onCheckpointTime(): void {
    this.#cancelCheckpoint = undefined;
    if (!this.#checkpoints.hasUnsigned) return;
    this.#checkpoints.ask();
    this.#run();
  }

  async #sync(): Promise<void> {
    this.#cancelSync?.();
    this.#cancelSync = undefined;
    await this.#segments.sync().catch(() => undefined); // what is lost by it, the verifier finds
  }

  #take(): readonly WaitingRecord[] {
    const taken = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return taken;
  }

  #own<N extends AuditEventName>(event: N, fields: AuditFields[N]): WaitingRecord {
    return { atMs: Math.floor(this.#clock.wallMs()), event, fields: JSON.stringify(fields) };
  }
}
