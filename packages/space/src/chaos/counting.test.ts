// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Counting } from "./counting.ts";

function said(...pieces: readonly string[]): string | undefined {
  const counting = new Counting("count sbx_a 1");
  for (const piece of pieces) counting.take(piece);
  return counting.violation?.kind;
}

test("numbers once and in order are right, however they are cut", () => {
  assert.equal(said("count sbx_a 1 1\ncou", "nt sbx_a 1 2\n", "count sb"), undefined);
});

test("a number that is missing, twice, cut or out of order is found, and so is another's", () => {
  assert.equal(said("count sbx_a 1 2\n"), "stream");
  assert.equal(said("count sbx_a 1 1\ncount sbx_a 1 1\n"), "stream");
  assert.equal(said("count sbx_a 1 1\nsbx_a 1 2\n"), "stream");
  assert.equal(said("count sbx_b 1 1\n"), "wrong delivery");
  assert.equal(said("count sbx_a 2 1\n"), "wrong delivery");
});
