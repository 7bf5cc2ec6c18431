// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { atLeast, atMost, judge } from "./goals.ts";

const fast = atLeast("G5", "requests", 0.9, 0.95);
const short = atMost("G16", "errors", 1.5, 1.2);

test("a goal is met from its limit on, and stretched from the stretch on", () => {
  assert.deepEqual(
    [0.899_99, 0.9, 0.949_99, 0.95, 3].map((value) => judge(fast, value).verdict),
    ["missed", "met", "met", "stretch", "stretch"],
  );
});

test("a goal that must stay low is met down from its limit", () => {
  assert.deepEqual(
    [1.500_01, 1.5, 1.200_01, 1.2, 0].map((value) => judge(short, value).verdict),
    ["missed", "met", "met", "stretch", "stretch"],
  );
});

test("no error at all is the only stretch of a goal of zero", () => {
  const none = atMost("G16", "errors", 0, 0);
  assert.equal(judge(none, 0).verdict, "stretch");
  assert.equal(judge(none, 1e-9).verdict, "missed");
});

test("the verdict is about the value, not about the digits that are shown", () => {
  const judged = judge(fast, 0.899_96);
  assert.equal(judged.measured, 0.9);
  assert.equal(judged.verdict, "missed");
});

test("what was not measured is neither met nor missed", () => {
  assert.equal(judge(fast, undefined).verdict, "not measured");
  assert.equal(judge(fast, Number.NaN).measured, null);
});
