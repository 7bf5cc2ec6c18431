// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, rmSync } from "node:fs";
import { lineDigest, parseRecord } from "./audit-record.ts";
import { type ChainState, emptyChain } from "./chain.ts";
import { cutTornTail, listSegments, readLines, type Segment, type TornTail } from "./segments.ts";

/** What an earlier process left, and where the chain goes on. */
export interface LeftLog {
  readonly state: ChainState;
  /** Undefined for a log that begins now. */
  readonly log: string | undefined;
  readonly torn: TornTail | undefined;
}

/**
 * Makes the directory where it is missing and reads the end of what is there. What a crash tore off is cut; whole lines
 * are kept whatever they say, and the chain goes on from them: to judge them is the verifier's task.
 */
export function recoverLog(directory: string): LeftLog {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  let torn: TornTail | undefined;
  for (const segment of listSegments(directory).toReversed()) {
    torn ??= cutTornTail(segment);
    const end = endOf(segment);
    if (end !== undefined) return { ...end, torn };
    rmSync(segment.path); // its number is the next one's
  }
  return { state: emptyChain, log: undefined, torn };
}

function endOf(segment: Segment): Pick<LeftLog, "state" | "log"> | undefined {
  let count = 0;
  let last: Buffer | undefined;
  let log: string | undefined;
  for (const { bytes } of readLines(segment.path)) {
    if (count === 0) log = logNamed(bytes);
    count += 1;
    last = bytes;
  }
  if (last === undefined) return undefined;
  // The number follows from the place, so that a line that cannot be read does not end the log.
  const sequence = parseRecord(last.toString("utf8"))?.sequence ?? segment.firstSequence + count - 1;
  return { state: { sequence, head: lineDigest(last) }, log };
}

/** Every segment begins with the name of its log. */
function logNamed(line: Buffer): string | undefined {
  const record = parseRecord(line.toString("utf8"));
  const log = record?.event === "audit/opened" ? record.fields["log"] : undefined;
  return typeof log === "string" ? log : undefined;
}
