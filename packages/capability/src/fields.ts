// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** The end of the year 9999: later times are mistakes, and milliseconds stay exact. */
const latestSeconds = 253_402_300_799;

/** Whole seconds since 1970. Throws `input/invalid`. */
export function parseSeconds(value: unknown, field: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= latestSeconds)
    return value;
  throw invalid(field, "must be whole seconds since 1970");
}

/** A whole number of at least `least`. Throws `input/invalid`. */
export function parseCount(value: unknown, field: string, least: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(field, `must be a whole number from ${least}`);
}

/** 1 to 128 printable ASCII characters: names that end up in logs. Throws `input/invalid`. */
export function parseName(value: unknown, field: string): string {
  if (typeof value === "string" && /^[\x20-\x7e]{1,128}$/.test(value)) return value;
  throw invalid(field, "must be 1 to 128 printable ASCII characters");
}

/** 43 characters hold 258 bits: the last one must leave its two lowest bits clear. */
const canonical32Bytes = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** 32 bytes as canonical base64url: a SHA-256 or a raw Ed25519 public key. Throws `input/invalid`. */
export function parse32Bytes(value: unknown, field: string): string {
  if (typeof value === "string" && canonical32Bytes.test(value)) return value;
  throw invalid(field, "must be 32 bytes in base64url");
}

/** Throws `input/invalid`. */
export function parseList(value: unknown, field: string, most: number): readonly unknown[] {
  if (Array.isArray(value) && value.length <= most) return value;
  throw invalid(field, `must be a list of at most ${most}`);
}

export function invalid(field: string, problem: string): SpaceError<"input/invalid"> {
  return new SpaceError("input/invalid", { field, problem });
}
