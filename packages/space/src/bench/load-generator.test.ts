// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { lua } from "./load-generator.ts";

test("no text can leave a Lua string", () => {
  assert.equal(lua("plain-1 _."), '"plain-1 _."');
  assert.equal(lua('a"b\\c\nd'), '"a\\034b\\092c\\010d"');
  assert.equal(lua("é"), '"\\195\\169"');
});
