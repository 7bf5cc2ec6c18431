// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { chunkSizeBytes, snapshotChunkLimit } from "./snapshot.ts";

it("the most chunks hold 10.9 GiB", () => {
  assert.equal(((chunkSizeBytes * snapshotChunkLimit) / 2 ** 30).toFixed(1), "10.9");
});
