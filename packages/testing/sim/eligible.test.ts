// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActivationId } from "@space/model";
import { isEligible } from "./eligible.ts";
import type { SimProcess } from "./sim-machine.ts";
import type { TrueSandbox } from "./truth.ts";

const was = `act_${"a".repeat(26)}` as ActivationId; // cast: of the form that it has
const next = `act_${"b".repeat(26)}` as ActivationId; // cast: of the form that it has

/** Whether a stream of process 1 goes on, which was begun as `was`. */
function goesOn(
  state: TrueSandbox["state"],
  current: ActivationId,
  process: Pick<SimProcess, "state" | "activation">,
): boolean {
  const others = [{ uid: 2, state: "gone", activation: was } as const];
  return isEligible({ state, current, processes: [...others, { uid: 1, ...process }] }, [1]);
}

test("R-22: a stream whose process runs, or is frozen by a pause that may still fail, must go on", () => {
  assert.equal(goesOn("running", was, { state: "running", activation: was }), true);
  assert.equal(goesOn("pausing", was, { state: "frozen", activation: was }), true);
});

test("R-22: a stream must go on while a resume may take its frozen process up, and when it has", () => {
  assert.equal(goesOn("resuming", next, { state: "frozen", activation: was }), true);
  assert.equal(goesOn("resuming", next, { state: "running", activation: was }), true);
  assert.equal(goesOn("running", next, { state: "running", activation: next }), true);
});

test("R-22: no stream goes on from a frozen process that another has replaced, though it is not yet ended", () => {
  assert.equal(goesOn("running", next, { state: "frozen", activation: was }), false);
  assert.equal(goesOn("pausing", next, { state: "frozen", activation: was }), false);
});

test("R-22: no stream goes on whose process is gone, or whose sandbox was left paused or killed", () => {
  assert.equal(goesOn("running", was, { state: "gone", activation: was }), false);
  for (const state of ["paused", "killing", "killed"] as const)
    assert.equal(goesOn(state, was, { state: "frozen", activation: was }), false);
});
