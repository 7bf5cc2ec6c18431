// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultCounts, faultKinds, neverLanded } from "./faults.ts";

for (const spared of faultKinds) {
  test(`a run without ${spared} is found out`, () => {
    const counts = new FaultCounts();
    for (const kind of faultKinds) if (kind !== spared) counts.landed(kind);
    assert.deepEqual(neverLanded(counts.toJson()), [spared]);
    counts.landed(spared);
    assert.deepEqual(neverLanded(counts.toJson()), []);
  });
}
