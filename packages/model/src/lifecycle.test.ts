// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { enteredFrom, mayEnter, type SandboxState } from "./lifecycle.ts";

const states = Object.keys(enteredFrom) as SandboxState[];

it("goes from creating to killed by the way of the lifecycle", () => {
  const way = [
    "creating",
    "running",
    "pausing",
    "paused",
    "resuming",
    "running",
    "killing",
    "killed",
  ] as const;
  way.slice(1).forEach((to, at) => {
    assert.ok(mayEnter(way[at] ?? "lost", to), to);
  });
});

it("a delete always wins: every state but killed may be left for killing", () => {
  const kept = states.filter((state) => !mayEnter(state, "killing"));
  assert.deepEqual(kept, ["killing", "killed"]);
});

it("killed and failed are ends: killed is left for nothing, failed only for killing", () => {
  const next = (from: SandboxState): SandboxState[] => states.filter((to) => mayEnter(from, to));
  assert.deepEqual([next("killed"), next("failed")], [[], ["killing"]]);
});

it("nothing is created twice, and no state is entered from itself", () => {
  assert.deepEqual(enteredFrom.creating, []);
  assert.ok(states.every((state) => !mayEnter(state, state)));
});

it("R-1: only a sandbox that is paused, lost or, as it is moved, being paused is resumed", () => {
  assert.deepEqual([...enteredFrom.resuming].sort(), ["lost", "paused", "pausing"]);
});

it("a frozen sandbox runs again only out of an aborted pause, and a lost one never without a resume", () => {
  assert.deepEqual([...enteredFrom.running].sort(), ["creating", "pausing", "resuming"]);
});
