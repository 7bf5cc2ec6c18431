// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { createNarrator, StoryEnded } from "./narrator.ts";

const still = { colour: false, nowMs: () => 0 };

test("a step that is not as it should be ends the story", async () => {
  const narrator = createNarrator(undefined, still);
  await assert.rejects(
    narrator.step("breaks", () => Promise.resolve({ ok: false, text: "no" })),
    StoryEnded,
  );
  assert.equal(narrator.records[0]?.ok, false);
});

test("a step that throws is told as failed", async () => {
  const told: string[] = [];
  const narrator = createNarrator((text) => told.push(text), still);
  await assert.rejects(
    narrator.step("throws", () => Promise.reject(new Error("reason"))),
    StoryEnded,
  );
  assert.match(told.join(""), /reason/);
});

test("steps are numbered, timed and told with their facts", async () => {
  let now = 0;
  const told: string[] = [];
  const narrator = createNarrator((text) => told.push(text), { colour: false, nowMs: () => (now += 5) });
  await narrator.step("first", () =>
    Promise.resolve({ ok: true, text: "done", generation: "1", worker: "wrk_a" }),
  );
  assert.deepEqual(narrator.records, [
    { step: 1, title: "first", ok: true, text: "done", generation: "1", worker: "wrk_a", milliseconds: 5 },
  ]);
  assert.match(told.join(""), /generation 1 · wrk_a · 5 ms/);
});
