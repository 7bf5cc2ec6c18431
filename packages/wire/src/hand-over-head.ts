// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { members, SpaceError } from "@space/model";

/** Longest sealed chunk that one worker gives another: the content's limit, and what sealing adds. */
export const handedChunkLimitBytes: number = 16 * 1024 * 1024 + 128;
const grantLimitBytes = 2048;

/** With which a worker asks another for one sealed chunk; nothing follows it. */
export interface HandOverHead {
  /** The control plane's signed grant. */
  readonly grant: string;
  /** The chunk's name in the store. */
  readonly chunk: string;
}

/** Before the chunk's bytes; 0: it is one of the snapshot's, and not held here. */
export interface HandOverAnswer {
  readonly sizeBytes: number;
}

/** Reads an asking worker's head strictly. It says nothing about the grant. Throws `input/invalid`. */
export function parseHandOverHead(value: unknown): HandOverHead {
  const { grant, chunk } = members(value, "head", ["grant", "chunk"]);
  if (typeof grant !== "string" || grant.length > grantLimitBytes)
    throw bad("grant", "must be a bounded string");
  if (typeof chunk !== "string" || !/^[0-9a-f]{64}$/.test(chunk))
    throw bad("chunk", "must be a chunk's name");
  return { grant, chunk };
}

/** Reads a giving worker's head strictly. Throws `input/invalid`. */
export function parseHandOverAnswer(value: unknown): HandOverAnswer {
  const { sizeBytes } = members(value, "head", ["sizeBytes"]);
  const isSize = typeof sizeBytes === "number" && Number.isSafeInteger(sizeBytes) && sizeBytes >= 0;
  if (!isSize || sizeBytes > handedChunkLimitBytes) throw bad("sizeBytes", "must be within its bounds");
  return { sizeBytes };
}

function bad(field: string, problem: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem });
}
