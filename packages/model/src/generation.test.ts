// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "./errors.ts";
import { firstGeneration, nextGeneration, parseGeneration } from "./generation.ts";

it("R-1: counts from 1, and only up", () => {
  assert.equal(firstGeneration, 1n);
  assert.equal(nextGeneration(nextGeneration(firstGeneration)), 3n);
});

it("reads positive decimal text up to what a store's 64-bit integer holds", () => {
  assert.equal(parseGeneration("1"), firstGeneration);
  assert.equal(parseGeneration("9223372036854775807"), 2n ** 63n - 1n);
  for (const text of [
    "0",
    "",
    "-1",
    "01",
    "1.0",
    "1e3",
    "0x1",
    " 1",
    "1\n",
    "9223372036854775808",
    "1".repeat(20),
    1,
    1n,
    null,
  ]) {
    assert.throws(
      () => parseGeneration(text),
      (error) => isSpaceError(error, "input/invalid"),
      String(text),
    );
  }
});
