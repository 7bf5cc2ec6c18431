// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openAuditCheckpoint } from "@space/capability";
import type { Digest } from "@space/model";
import { type AuditRecord, lineDigest, noDigest, parseRecord } from "./audit-record.ts";
import { Findings, type LogProblem, type Place } from "./findings.ts";
import { lastCheckpointName } from "./log-writer.ts";
import { type Line, listSegments, readLines } from "./segments.ts";
import { type AuditTrust, WitnessedKeys } from "./witness.ts";

export interface VerifyLogOptions {
  readonly directory: string;
  /** Whose log it must be. */
  readonly process: string;
  readonly trust: AuditTrust;
  /** Tokens of checkpoints that were kept elsewhere: what the log must still hold. */
  readonly kept?: readonly string[];
}

export interface LogReport {
  readonly process: string;
  readonly log: string | null;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly records: number;
  readonly checkpoints: number;
  /** The newest good one. */
  readonly lastCheckpoint: { readonly sequence: number; readonly atMs: number } | null;
  /** Records after it: chained, and yet unsigned. */
  readonly unsigned: number;
  /** Records that say what a full disk or a crash cost. */
  readonly dropped: number;
  readonly recovered: number;
  /** Bytes behind the last whole line: a process that is writing, or was killed. */
  readonly tornBytes: number;
  readonly problems: readonly LogProblem[];
  readonly problemsLeftOff: number;
}

/** How often a log is read anew whose retention took a file away meanwhile: each round has the next 16 MiB to do it in. */
const readsLimit = 5;

/**
 * Reads a whole log and says what was altered, removed, reordered or cut off since it was written. The writer may go on
 * meanwhile: what it adds and what its retention removes is no alarm. Memory is bounded by the longest line and the limit
 * of findings. `list` finds the segments. Throws when the files cannot be read.
 */
export function verifyLog(options: VerifyLogOptions, list = listSegments): LogReport {
  for (let reads = 1; ; reads += 1) {
    try {
      return readLog(options, list);
    } catch (error) {
      if (reads === readsLimit || !isGone(error)) throw error;
    }
  }
}

function readLog(options: VerifyLogOptions, list: typeof listSegments): LogReport {
  const reader = new LogReader(options);
  for (const segment of list(options.directory)) {
    for (const line of readLines(segment.path)) reader.take(segment.name, line);
  }
  return reader.finish();
}

/** A file that was listed was removed before it was read. A folder that is not there stays so. */
function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** More records than this without a checkpoint come from no writer that works. */
const unsignedLimit = 10_000;
/** Before the first: a process signs before it serves anybody, so that it has little to record until then. */
const unsignedStartLimit = 100;

interface Expectation {
  /** As the token says, before it is verified: which record to keep the digest of. */
  readonly count: number;
  readonly token: string;
  readonly what: string;
}

class LogReader {
  readonly #options: VerifyLogOptions;
  readonly #findings = new Findings();
  readonly #keys: WitnessedKeys;
  readonly #expected: readonly Expectation[];
  #log: string | null = null;
  #first = 0;
  #sequence = 0;
  #head: Digest = noDigest;
  #startedFrom: Digest = noDigest;
  #records = 0;
  #checkpoints = 0;
  #lastGood: LogReport["lastCheckpoint"] = null;
  #dropped = 0;
  #recovered = 0;
  #tornBytes = 0;
  #isTrimmedTo = false;
  /** Digests at the sequences that a kept checkpoint speaks of. */
  readonly #marked = new Map<number, Digest>();

  constructor(options: VerifyLogOptions) {
    this.#options = options;
    this.#keys = new WitnessedKeys(options.trust, options.process);
    const newest = this.#newestFile();
    this.#expected = [
      ...(newest === undefined ? [] : [expectation(newest, `the file ${lastCheckpointName}`)]),
      ...(options.kept ?? []).map((token) => expectation(token.trim(), "the checkpoint that was kept")),
    ];
  }

  take(segment: string, { bytes, number, isWhole, isTooLong }: Line): void {
    if (!isWhole) {
      this.#tornBytes = bytes.length;
      return;
    }
    const record = isTooLong ? undefined : parseRecord(bytes.toString("utf8"));
    const at = { segment, line: number };
    if (record === undefined) {
      this.#findings.add({ kind: "altered", sequence: this.#sequence + 1, ...at, detail: "cannot be read" });
      this.#advance(this.#sequence + 1, lineDigest(bytes));
      return;
    }
    this.#records += 1;
    const { sequence } = record;
    if (this.#first === 0) this.#begin(record);
    if (sequence <= this.#sequence) {
      this.#findings.outOfOrder({ sequence, ...at });
      return; // the chain goes on from where it was
    }
    if (sequence > this.#sequence + 1) this.#findings.gap(this.#sequence + 1, sequence - 1, at);
    else if (record.previous !== this.#head) {
      this.#findings.add({
        kind: "altered",
        sequence: this.#sequence,
        ...at,
        detail: "is not what its successor was linked to",
      });
    }
    this.#read(record, at);
    this.#advance(sequence, lineDigest(bytes));
  }

  finish(): LogReport {
    for (const { token, what } of this.#expected) this.#compare(token, what);
    const unsigned = this.#sequence - (this.#lastGood?.sequence ?? this.#first - 1);
    this.#judgeEnds(unsigned);
    return {
      process: this.#options.process,
      log: this.#log,
      firstSequence: this.#first,
      lastSequence: this.#sequence,
      records: this.#records,
      checkpoints: this.#checkpoints,
      lastCheckpoint: this.#lastGood,
      unsigned,
      dropped: this.#dropped,
      recovered: this.#recovered,
      tornBytes: this.#tornBytes,
      ...this.#findings.result(),
    };
  }

  #newestFile(): string | undefined {
    const path = join(this.#options.directory, lastCheckpointName);
    return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
  }

  /** A log may begin later than at 1 when it says itself that what came before was removed. */
  #begin({ sequence, previous }: AuditRecord): void {
    this.#first = sequence;
    this.#sequence = sequence - 1;
    this.#head = sequence === 1 ? noDigest : previous;
    this.#startedFrom = previous;
  }

  #advance(sequence: number, digest: Digest): void {
    if (this.#first === 0) this.#first = sequence;
    this.#sequence = sequence;
    this.#head = digest;
    if (this.#expected.some(({ count }) => count === sequence)) this.#marked.set(sequence, digest);
  }

  #read(record: AuditRecord, at: Place): void {
    const { event, fields, sequence } = record;
    const bad = (detail: string): void => this.#findings.add({ kind: "signature", sequence, ...at, detail });
    switch (event) {
      case "audit/opened":
        if (fields["process"] !== this.#options.process) bad("is of another process's log");
        if (this.#log !== null && fields["log"] !== this.#log) bad("is of another log");
        if (typeof fields["log"] === "string") this.#log ??= fields["log"];
        return;
      case "audit/witness": {
        const problem = this.#keys.add(fields["kind"], fields["proof"]);
        if (problem !== undefined) bad(problem);
        return;
      }
      case "audit/checkpoint":
        this.#readCheckpoint(record, at);
        return;
      case "audit/dropped":
        this.#dropped += Number(fields["count"]);
        return;
      case "audit/recovered":
        this.#recovered += 1;
        return;
      case "audit/trimmed":
        this.#isTrimmedTo ||=
          fields["throughSequence"] === this.#first - 1 && fields["digest"] === this.#startedFrom;
        return;
      default:
        return;
    }
  }

  #readCheckpoint({ fields, sequence, atMs }: AuditRecord, at: Place): void {
    const add = (kind: LogProblem["kind"], from: number, detail: string): void =>
      this.#findings.add({ kind, sequence: from, ...at, detail });
    const opened = openAuditCheckpoint(String(fields["token"]), this.#keys.find);
    if (opened.kind === "refused")
      return add("signature", sequence, `a checkpoint refused by its ${opened.reason}`);
    const { log, process, count, head } = opened.value;
    if (log !== this.#log || process !== this.#options.process) {
      return add("signature", sequence, "a checkpoint of another log");
    }
    if (count !== sequence - 1 || head !== this.#head) {
      const from = (this.#lastGood?.sequence ?? this.#first - 1) + 1;
      return add("altered", from, `records ${from} to ${sequence - 1} are not the ones that were signed`);
    }
    this.#checkpoints += 1;
    this.#lastGood = { sequence: count, atMs };
  }

  /** What a checkpoint apart from the log says of it. */
  #compare(token: string, what: string): void {
    const at = { segment: "", line: 0 };
    const opened = openAuditCheckpoint(token, this.#keys.find);
    if (opened.kind === "refused" || opened.value.log !== this.#log) {
      this.#findings.add({ kind: "signature", sequence: 0, ...at, detail: `${what} is not this log's` });
      return;
    }
    const { count, head } = opened.value;
    if (count > this.#sequence) {
      const detail = `${what} covers ${count} records: ${this.#sequence + 1} to ${count} were cut off`;
      this.#findings.add({ kind: "truncated", sequence: this.#sequence + 1, ...at, detail });
    } else if (count >= this.#first && this.#marked.get(count) !== head) {
      this.#findings.add({
        kind: "altered",
        sequence: count,
        ...at,
        detail: `is not the one that ${what} covers`,
      });
    }
  }

  #judgeEnds(unsigned: number): void {
    const at = { segment: "", line: 0 };
    if (this.#first > 1 && !this.#isTrimmedTo) this.#findings.gap(1, this.#first - 1, at);
    // A crash between the first checkpoint and its copy leaves none; the second comes only after the copy.
    if (this.#checkpoints > 1 && this.#newestFile() === undefined) {
      const detail = `the file ${lastCheckpointName} is missing`;
      this.#findings.add({ kind: "removed", sequence: 0, ...at, detail });
    }
    const hasBegun = this.#first > 1 || this.#expected.length > 0;
    const limit = this.#lastGood !== null ? unsignedLimit : hasBegun ? 0 : unsignedStartLimit;
    if (unsigned <= limit) return;
    const sequence = this.#sequence - unsigned + 1;
    this.#findings.add({ kind: "signature", sequence, ...at, detail: "no checkpoint signs what follows" });
  }
}

function expectation(token: string, what: string): Expectation {
  return { count: claimedCount(token), token, what };
}

function claimedCount(token: string): number {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return typeof payload === "object" && payload !== null && "count" in payload ? Number(payload.count) : 0;
  } catch {
    return 0; // it is refused when it is verified
  }
}
