// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditFields } from "@space/model";
import { parseRecord } from "./audit-record.ts";
import { listSegments, readLines, type Segment } from "./segments.ts";

export interface Removal {
  readonly names: readonly string[];
  readonly fields: AuditFields["audit/trimmed"];
}

/**
 * Which of the oldest segments go so that the rest has at most `totalBytes`; the newest stays. Undefined when none goes,
 * or when what follows them cannot be read.
 */
export function removalOf(directory: string, totalBytes: number): Removal | undefined {
  const segments = listSegments(directory);
  let sum = segments.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
  const removed: Segment[] = [];
  for (const segment of segments.slice(0, -1)) {
    if (sum <= totalBytes) break;
    sum -= segment.sizeBytes;
    removed.push(segment);
  }
  const next = segments[removed.length];
  const digest = next && firstPrevious(next);
  if (removed.length === 0 || next === undefined || digest === undefined) return undefined;
  return {
    names: removed.map(({ name }) => name),
    fields: { throughSequence: next.firstSequence - 1, digest },
  };
}

function firstPrevious({ path }: Segment): string | undefined {
  for (const { bytes } of readLines(path)) return parseRecord(bytes.toString("utf8"))?.previous;
  return undefined;
}
