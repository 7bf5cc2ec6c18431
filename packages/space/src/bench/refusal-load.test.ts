// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { newScene } from "./capability-scene.ts";
import { measureRefusals } from "./refusal-load.ts";

it("R-9, R-11, R-13: refuses all that must be refused at full rate, and none of the good between them", () => {
  const report = measureRefusals(newScene(), true);
  assert.deepEqual(
    report.kinds.map(({ kind }) => kind),
    ["expired", "altered", "other identity", "revoked while remembered"],
  );
  for (const { sent, refused } of report.kinds) assert.deepEqual([sent, refused], [2_000, 2_000]);
  assert.deepEqual([report.goodSent, report.goodRefused, report.served], [2_000, 0, 0]);
});

it("counts what is served although it must not be", () => {
  const scene = newScene();
  // Nothing is revoked, and the other execution is the installed one.
  const broken = { ...scene, ringAfterRevocation: scene.ring };
  const report = measureRefusals(broken, true);
  assert.equal(report.served, 2_000);
});
