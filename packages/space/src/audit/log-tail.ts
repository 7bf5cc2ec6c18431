// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { listSegments, parseRecord, readLines } from "@space/audit-log";
import type { FoundLog } from "../data/audit-directories.ts";
import type { ShownRecord } from "./record-text.ts";

const lookEveryMs = 250;

/** The newest records of all logs together, of those that are wanted, in the order of their times. */
export function newestRecords(
  logs: readonly FoundLog[],
  count: number,
  isWanted: (record: ShownRecord) => boolean = () => true,
): readonly ShownRecord[] {
  const each = logs.flatMap((log) => lastOf(log, count, isWanted));
  return each.toSorted((a, b) => a.record.atMs - b.record.atMs).slice(count === 0 ? each.length : -count);
}

function lastOf(
  { process, directory }: FoundLog,
  count: number,
  isWanted: (record: ShownRecord) => boolean,
): readonly ShownRecord[] {
  let last: ShownRecord[] = [];
  for (const segment of listSegments(directory).toReversed()) {
    const own: ShownRecord[] = [];
    for (const record of recordsOf(segment.path)) {
      if (isWanted({ process, record })) own.push({ process, record });
      if (own.length > count) own.shift();
    }
    last = [...own, ...last].slice(-count);
    if (last.length >= count) break;
  }
  return last;
}

/** None of a segment that the retention has removed meanwhile. */
function* recordsOf(path: string): Generator<ShownRecord["record"]> {
  if (!existsSync(path)) return;
  for (const { bytes, isWhole } of readLines(path)) {
    const record = isWhole ? parseRecord(bytes.toString("utf8")) : undefined;
    if (record !== undefined) yield record;
  }
}

interface Seen {
  readonly sequence: number;
  /** Of all segments: nothing is read again while nothing was written. */
  readonly sizeBytes: number;
}

/** Shows what is written from now on, until the signal. Logs that appear meanwhile are followed from their beginning. */
export async function followLogs(
  find: () => readonly FoundLog[],
  show: (record: ShownRecord) => void,
  signal: AbortSignal,
): Promise<void> {
  const seen = new Map<string, Seen>();
  for (const { directory } of find()) {
    seen.set(directory, { sequence: lastSequence(directory), sizeBytes: 0 });
  }
  while (!signal.aborted) {
    for (const { process, directory } of find()) {
      const before = seen.get(directory) ?? { sequence: 0, sizeBytes: 0 };
      const sizeBytes = listSegments(directory).reduce((sum, segment) => sum + segment.sizeBytes, 0);
      if (sizeBytes === before.sizeBytes) continue;
      let { sequence } = before;
      for (const record of recordsAfter(directory, sequence)) {
        sequence = record.sequence;
        show({ process, record });
      }
      seen.set(directory, { sequence, sizeBytes });
    }
    await pause(lookEveryMs, undefined, { signal }).catch(() => undefined); // the signal ends the loop
  }
}

function lastSequence(directory: string): number {
  return lastOf({ process: "", directory }, 1, () => true)[0]?.record.sequence ?? 0;
}

/** Reads only the segments that can hold later records. */
function* recordsAfter(directory: string, sequence: number): Generator<ShownRecord["record"]> {
  const segments = listSegments(directory);
  const first = segments.findLastIndex(({ firstSequence }) => firstSequence <= sequence + 1);
  for (const { path } of segments.slice(Math.max(0, first))) {
    for (const record of recordsOf(path)) if (record.sequence > sequence) yield record;
  }
}
