// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { boundedRate } from "./bounded-rate.ts";

test("nothing in n trials bounds the rate at 3/n", () => {
  const { rate, upper95 } = boundedRate(0, 10_000);
  assert.equal(rate, 0);
  assert.ok(Math.abs(upper95 * 10_000 - 2.996) < 0.01);
});

test("bounds of counts are those of the tables, and never below the rate or above one", () => {
  for (const [count, mean] of [
    [1, 4.744],
    [5, 10.513],
    [100, 118.08],
    [1000, 1053.6],
  ] as const) {
    const { upper95 } = boundedRate(count, 100_000);
    assert.ok(Math.abs(upper95 * 100_000 - mean) < mean * 0.002, `${count}: ${upper95}`);
  }
  assert.equal(boundedRate(3, 3).upper95, 1);
  assert.throws(() => boundedRate(0, 0), TypeError);
});
