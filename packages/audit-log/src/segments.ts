// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, openSync, readdirSync, readSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { syncFolderNow } from "@space/platform-linux/durable-file";
import { lineDigest, lineLimitBytes } from "./audit-record.ts";

/** One file of a log; its name is the number of its first record. */
export interface Segment {
  readonly name: string;
  readonly path: string;
  readonly firstSequence: number;
  readonly sizeBytes: number;
}

/** One complete line, or what follows the last one. */
export interface Line {
  readonly bytes: Buffer;
  /** From 1. */
  readonly number: number;
  /** False for what lacks its end; it is the last. */
  readonly isWhole: boolean;
  /** Longer than any line that is written: `bytes` holds only its beginning. */
  readonly isTooLong: boolean;
}

const nameForm = /^([0-9]{16})\.jsonl$/;
const chunkBytes = 64 * 1024;

export function segmentName(firstSequence: number): string {
  return `${String(firstSequence).padStart(16, "0")}.jsonl`;
}

/** A log's segments in order; one that the retention removes just now is none. Throws when the directory cannot be read. */
export function listSegments(directory: string): readonly Segment[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const first = nameForm.exec(name)?.[1];
      if (first === undefined) return [];
      const path = join(directory, name);
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? [] : [{ name, path, firstSequence: Number(first), sizeBytes: stats.size }];
    })
    .sort((a, b) => a.firstSequence - b.firstSequence);
}

/** The lines of a file, in memory bounded by the longest line. */
export function* readLines(path: string): Generator<Line> {
  const file = openSync(path, "r");
  try {
    let number = 1;
    let rest = Buffer.alloc(0);
    let isTooLong = false;
    const chunk = Buffer.alloc(chunkBytes);
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      let from = 0;
      for (let end = chunk.indexOf(10); end >= 0 && end < read; end = chunk.indexOf(10, from)) {
        const bytes = Buffer.concat([rest, chunk.subarray(from, end)]);
        yield { bytes, number, isWhole: true, isTooLong: isTooLong || bytes.length > lineLimitBytes };
        [rest, isTooLong, from] = [Buffer.alloc(0), false, end + 1];
        number += 1;
      }
      rest = Buffer.concat([rest, chunk.subarray(from, read)]);
      isTooLong ||= rest.length > lineLimitBytes;
      if (isTooLong) rest = rest.subarray(0, lineLimitBytes);
    }
    if (rest.length > 0) yield { bytes: rest, number, isWhole: false, isTooLong };
  } finally {
    closeSync(file);
  }
}

/** What a crash left behind the last complete line. */
export interface TornTail {
  readonly bytes: number;
  readonly digest: string;
}

/** Cuts an incomplete last line off and syncs. Undefined when the file ends with a whole line. */
export function cutTornTail(segment: Segment): TornTail | undefined {
  let torn: Buffer | undefined;
  for (const { bytes, isWhole } of readLines(segment.path)) torn = isWhole ? undefined : bytes;
  if (torn === undefined) return undefined;
  const keptBytes = sizeOfWholeLines(segment.path);
  truncateSync(segment.path, keptBytes);
  syncFolderNow(segment.path);
  return { bytes: segment.sizeBytes - keptBytes, digest: lineDigest(torn) };
}

function sizeOfWholeLines(path: string): number {
  let size = 0;
  const file = openSync(path, "r");
  try {
    const chunk = Buffer.alloc(chunkBytes);
    let at = 0;
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      const last = chunk.subarray(0, read).lastIndexOf(10);
      if (last >= 0) size = at + last + 1;
      at += read;
    }
  } finally {
    closeSync(file);
  }
  return size;
}
