// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { plantedFaults } from "./planted-faults.ts";
import { productRules } from "./protocol-model.ts";
import { search } from "./search.ts";

test("R-12, R-13, R-16, R-24: no reachable state of two workers, a gateway and three generations breaks an invariant", () => {
  const { found, states } = search(productRules, 1);
  assert.equal(found, undefined);
  assert.ok(states > 10_000, "the whole model was searched");
});

for (const [fault, rules] of Object.entries(plantedFaults)) {
  test(`a search finds it when ${fault}`, () => {
    const { found } = search(rules, 1);
    assert.ok(found !== undefined && found.way.length > 1, "it was not found");
  });
}
