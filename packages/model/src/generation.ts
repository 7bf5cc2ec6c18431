// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Brand } from "./brand.ts";
import { SpaceError } from "./errors.ts";

/** counts the runtime processes of one sandbox, from 1, only ever up. */
export type Generation = Brand<bigint, "Generation">;

export const firstGeneration: Generation = 1n as Generation; // cast: the one literal generation

const limit = 2n ** 63n;
const longest = limit.toString().length;

/** Reads the decimal text used in JSON and in the stores. Throws `input/invalid`. */
export function parseGeneration(text: unknown): Generation {
  if (typeof text !== "string" || !/^[1-9][0-9]{0,18}$/.test(text)) {
    throw new SpaceError("input/invalid", {
      field: "generation",
      problem: "must be a positive decimal string",
    });
  }
  const value = BigInt(text);
  if (text.length === longest && value >= limit)
    throw new SpaceError("input/invalid", { field: "generation", problem: "too large" });
  return value as Generation; // cast: checked above
}

/** the generation of the next runtime process of the same sandbox. */
export function nextGeneration(generation: Generation): Generation {
  return (generation + 1n) as Generation; // cast: stays a positive integer
}
