// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { handedChunkLimitBytes, parseHandOverAnswer, parseHandOverHead } from "./hand-over-head.ts";

const invalid = (error: unknown): boolean => isSpaceError(error, "input/invalid");
const chunk = "a".repeat(64);

it("reads a request for one chunk, and nothing else", () => {
  assert.deepEqual(parseHandOverHead({ grant: "g", chunk }), { grant: "g", chunk });
  for (const wrong of [
    null,
    [],
    {},
    { grant: "g" },
    { chunk },
    { grant: 1, chunk },
    { grant: "g".repeat(2049), chunk },
    { grant: "g", chunk: chunk.toUpperCase() },
    { grant: "g", chunk: `${chunk}0` },
    { grant: "g", chunk: `../${chunk}` },
    { grant: "g", chunk: [chunk] },
    { grant: "g", chunk, more: 1 },
  ])
    assert.throws(() => parseHandOverHead(wrong), invalid, JSON.stringify(wrong));
});

it("reads an answer within the bounds of a chunk, and nothing else", () => {
  for (const sizeBytes of [0, 1, handedChunkLimitBytes])
    assert.deepEqual(parseHandOverAnswer({ sizeBytes }), { sizeBytes });
  for (const sizeBytes of [-1, 0.5, handedChunkLimitBytes + 1, "1", null, undefined])
    assert.throws(() => parseHandOverAnswer({ sizeBytes }), invalid, String(sizeBytes));
  assert.throws(() => parseHandOverAnswer({ sizeBytes: 1, more: 1 }), invalid);
});
