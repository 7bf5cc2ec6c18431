// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";

/**
 * The test's own proof that its fault happened: how often it was seen to. A scenario whose fault never landed passes for
 * nothing, so `npm run incidents` counts only tests that call this with a number that they have taken.
 */
export function faultLanded(fault: string, times: number): void {
  assert.ok(times > 0, `the fault never landed: ${fault}`);
}
