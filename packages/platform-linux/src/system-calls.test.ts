// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { bootTimeMs, bootTimeNanoseconds } from "./system-calls.ts";

it("R-16: tells the time since the host booted as a number and as nanoseconds, one and the same", () => {
  const before = bootTimeNanoseconds();
  const between = bootTimeMs();
  const after = bootTimeNanoseconds();
  assert.ok(Number(before) / 1e6 <= between && between <= Number(after) / 1e6);
});
