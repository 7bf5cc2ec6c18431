// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { guestOperations } from "@space/wire";
import { servedOperations } from "./serve-operation.ts";

it("R-8: serves exactly the operations that have a scope", () => {
  assert.deepEqual([...servedOperations].sort(), [...guestOperations].sort());
});
