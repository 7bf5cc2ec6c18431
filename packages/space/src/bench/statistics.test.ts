// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { median, medianRatio, percentile, rounded } from "./statistics.ts";

test("the median is the middle value, whatever the order", () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([7]), 7);
});

test("a percentile lies between its neighbours by proportion", () => {
  assert.equal(percentile([0, 10], 50), 5);
  assert.equal(percentile([1, 2, 3, 4, 5], 100), 5);
  assert.equal(percentile([1, 2, 3, 4, 5], 0), 1);
  assert.equal(percentile([10, 20, 30, 40, 50], 99), 49.6);
});

test("nothing has no percentile", () => {
  assert.throws(() => percentile([], 50), TypeError);
});

test("the ratio is taken within each round before the median", () => {
  // The second round was ten times slower for both: the ratio of the medians would be 1, every round says 0.5.
  assert.equal(medianRatio([50, 5, 60], [100, 10, 120]), 0.5);
});

test("a round that lacks a value, or has nothing to divide by, does not count", () => {
  assert.equal(medianRatio([1, undefined, 3, 8], [2, 2, undefined, 0]), 0.5);
  assert.equal(medianRatio([undefined], [1]), undefined);
  assert.equal(medianRatio([], []), undefined);
});

test("a measurement is given with three digits", () => {
  assert.equal(rounded(12_345.6), 12_300);
  assert.equal(rounded(0.001_234_5), 0.001_23);
});
