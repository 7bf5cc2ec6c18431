// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { RecentMap } from "./recent-map.ts";

it("lets go of what was unused for longest", () => {
  const map = new RecentMap<number>(2);
  map.set("a", 1);
  map.set("b", 2);
  assert.equal(map.get("a"), 1);
  map.set("c", 3);
  assert.deepEqual([map.get("a"), map.get("b"), map.get("c"), map.size], [1, undefined, 3, 2]);
});

it("replaces, and counts once", () => {
  const map = new RecentMap<number>(2);
  map.set("a", 1);
  map.set("a", 2);
  assert.deepEqual([map.get("a"), map.size], [2, 1]);
});

it("holds nothing with a limit of 0, or when emptied", () => {
  const none = new RecentMap<number>(0);
  none.set("a", 1);
  assert.equal(none.get("a"), undefined);
  const map = new RecentMap<number>(2);
  map.set("a", 1);
  map.clear();
  assert.equal(map.size, 0);
});
