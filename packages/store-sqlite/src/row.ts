// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SQLOutputValue } from "node:sqlite";
import { SpaceError } from "@space/model";

export type Row = Record<string, SQLOutputValue>;

function damaged(column: string): SpaceError {
  return new SpaceError("store/failed", { step: `column ${column}` });
}

/** Reads a column of text. Throws `store/failed` for anything else. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw damaged(column);
  return value;
}

export function nullableText(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw damaged(column);
  return value;
}

export function nullableInteger(row: Row, column: string): number | null {
  return row[column] === null ? null : integer(row, column);
}

export function real(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== "number") throw damaged(column);
  return value;
}

/** A JSON object whose members are strings. */
export function strings(row: Row, column: string): Readonly<Record<string, string>> {
  const value: unknown = JSON.parse(text(row, column));
  if (typeof value !== "object" || value === null) throw damaged(column);
  const entries = Object.entries(value).map(([name, member]: [string, unknown]) => {
    if (typeof member !== "string") throw damaged(column);
    return [name, member] as const;
  });
  return Object.fromEntries(entries);
}

export function oneOf<T extends string>(row: Row, column: string, known: readonly T[]): T {
  const value = text(row, column);
  const found = known.find((candidate) => candidate === value);
  if (found === undefined) throw damaged(column);
  return found;
}
