// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isUtf8 } from "node:buffer";
import { SpaceError } from "@space/model";

/**
 * reads JSON of which every value has exactly one text: strict UTF-8, compact, no escape that JSON does not need,
 * numbers in their shortest form, no member twice at any depth. `read` takes the value apart and refuses every member
 * that it does not know, which also bounds the depth. Throws `input/invalid`, and nothing else unless `read` has a bug.
 */
export function readStrictJson<T>(bytes: Buffer, read: (value: unknown) => T): T {
  if (!isUtf8(bytes)) throw bad("is not UTF-8");
  const text = bytes.toString("utf8");
  const value = parse(text);
  const result = read(value);
  // JSON.parse keeps the last of equal members. Writing the value again shows that, and every other second spelling,
  // as a different text. It comes after `read`, so that what is written is known to be shallow.
  if (JSON.stringify(value) !== text) throw bad("is not the one text of its value");
  return result;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SpaceError("input/invalid", { field: "json", problem: "is not JSON" }, { cause });
  }
}

function bad(problem: string): SpaceError {
  return new SpaceError("input/invalid", { field: "json", problem });
}
