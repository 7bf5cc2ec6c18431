// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Dice } from "./dice.ts";

test("the same seed throws the same, another one others, and weights count", () => {
  const thrown = (seed: string): readonly number[] => {
    const dice = new Dice(seed);
    return Array.from({ length: 20 }, () => dice.between(5, 1000));
  };
  assert.deepEqual(thrown("1"), thrown("1"));
  assert.notDeepEqual(thrown("1"), thrown("2"));
  assert.ok(thrown("1").every((number) => number >= 5 && number <= 1000));
  const dice = new Dice("weights");
  const often = Array.from({ length: 400 }, () => dice.weighted({ seldom: 1, never: 0, often: 9 }));
  assert.equal(often.includes("never"), false);
  const seldom = often.filter((name) => name === "seldom").length;
  assert.ok(seldom > 10 && seldom < 100, String(seldom));
  assert.deepEqual(
    [...dice.shuffled([1, 2, 3, 4])].sort((a, b) => a - b),
    [1, 2, 3, 4],
  );
});
