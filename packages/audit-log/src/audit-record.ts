// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Digest, parseDigest } from "@space/model";

/** One line of a log. Its digest is taken of the line's very bytes, so that nothing is ever written again to verify it. */
export interface AuditRecord {
  /** From 1, without a gap. */
  readonly sequence: number;
  /** Digest of the record before it; of the first, {@link noDigest}. */
  readonly previous: Digest;
  /** Wall time of the writer. */
  readonly atMs: number;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export const noDigest: Digest = parseDigest("0".repeat(64));

/** Longest line that is written or read. */
export const lineLimitBytes: number = 64 * 1024;

/** An event before it has its place in the chain. `fields` is JSON. */
export interface WaitingRecord {
  readonly atMs: number;
  readonly event: string;
  readonly fields: string;
}

/** The line of a record, without its end. */
export function recordLine(
  sequence: number,
  previous: Digest,
  { atMs, event, fields }: WaitingRecord,
): string {
  return `{"sequence":${sequence},"previous":"${previous}","atMs":${atMs},"event":"${event}","fields":${fields}}`;
}

export function lineDigest(line: string | Uint8Array): Digest {
  return parseDigest(hash("sha256", line, "hex"));
}

/** Undefined for what no writer wrote. */
export function parseRecord(line: string): AuditRecord | undefined {
  const value = parseJson(line);
  if (!isObject(value)) return undefined;
  const { sequence, previous, atMs, event, fields } = value;
  const isWhole = Number.isSafeInteger(sequence) && Number.isSafeInteger(atMs) && typeof event === "string";
  if (!isWhole || typeof previous !== "string" || !/^[0-9a-f]{64}$/.test(previous) || !isObject(fields)) {
    return undefined;
  }
  return {
    sequence: Number(sequence),
    previous: parseDigest(previous),
    atMs: Number(atMs),
    event,
    fields,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller reports the line
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
