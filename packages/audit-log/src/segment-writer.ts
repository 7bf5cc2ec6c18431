// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { WaitingRecord } from "./audit-record.ts";
import { Chain, type ChainState } from "./chain.ts";
import type { LogFiles, SegmentFile } from "./segment-files.ts";
import { segmentName } from "./segments.ts";

interface OpenSegment {
  readonly file: SegmentFile;
  readonly name: string;
  readonly firstSequence: number;
  sizeBytes: number;
  /** Its first record, which names the log, is yet to be written. */
  isHeadless: boolean;
  /** A write failed: there may be more in the file than `sizeBytes`. */
  isTorn: boolean;
}

/** Links records and writes them at their place in the newest segment. A failed write leaves the chain as it was. */
export class SegmentWriter {
  readonly #files: LogFiles;
  readonly #head: () => WaitingRecord;
  readonly #chain: Chain;
  #segment: OpenSegment | undefined;
  /** Linked, and being written. */
  #inFlight: Buffer | undefined;

  constructor(state: ChainState, files: LogFiles, head: () => WaitingRecord) {
    this.#chain = new Chain(state);
    this.#files = files;
    this.#head = head;
  }

  get state(): ChainState {
    return this.#chain.state;
  }

  /** 0 before there is a segment. */
  get sizeBytes(): number {
    return this.#segment?.sizeBytes ?? 0;
  }

  /** Whether the segment's first record, which names the log, is still to be written: `append` writes it first. */
  get isHeadless(): boolean {
    return this.#segment?.isHeadless ?? true;
  }

  get hasSegment(): boolean {
    return this.#segment !== undefined;
  }

  /** Begins the next segment, and answers with the one that is now whole. Throws what the file system says. */
  async beginSegment(): Promise<{ readonly name: string; readonly sizeBytes: number } | undefined> {
    const whole = this.#segment;
    const firstSequence = this.state.sequence + 1;
    const name = segmentName(firstSequence);
    await whole?.file.sync();
    const file = await this.#files.create(name);
    this.#segment = { file, name, firstSequence, sizeBytes: 0, isHeadless: true, isTorn: false };
    await whole?.file.close();
    return whole;
  }

  /** Throws what the file system says; then nothing of it counts. */
  async append(records: readonly WaitingRecord[]): Promise<void> {
    const segment = this.#segment;
    if (segment === undefined) throw new TypeError("there is no segment");
    const before = this.state;
    const bytes = this.#link(segment, records);
    this.#inFlight = bytes;
    try {
      if (segment.isTorn) await segment.file.cutTo(segment.sizeBytes);
      segment.isTorn = true;
      await segment.file.write(bytes, segment.sizeBytes);
      segment.isTorn = false;
      segment.isHeadless = false;
      segment.sizeBytes += bytes.length;
    } catch (error) {
      this.#chain.returnTo(before);
      throw error;
    } finally {
      this.#inFlight = undefined;
    }
  }

  async sync(): Promise<void> {
    await this.#segment?.file.sync();
  }

  /** At the very end of the process: what is in flight again, at the same place, and what waits behind it. */
  writeNow(records: readonly WaitingRecord[]): void {
    const segment = this.#segment;
    if (segment === undefined) return;
    const inFlight = this.#inFlight ?? Buffer.alloc(0);
    if (inFlight.length > 0) segment.isHeadless = false;
    segment.file.writeNow(Buffer.concat([inFlight, this.#link(segment, records)]), segment.sizeBytes);
  }

  async close(): Promise<void> {
    await this.#segment?.file.close();
    this.#segment = undefined;
  }

  #link(segment: OpenSegment, records: readonly WaitingRecord[]): Buffer {
    const all = segment.isHeadless ? [this.#head(), ...records] : records;
    return Buffer.from(all.map((record) => this.#chain.link(record)).join(""));
  }
}
