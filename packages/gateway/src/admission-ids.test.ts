// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { AdmissionIds } from "./admission-ids.ts";

test("R-14: admission ids are of their form, all different, and drawn many at a time", () => {
  let draws = 0;
  let state = 1;
  const ids = new AdmissionIds({
    bytes: (length) => {
      draws += 1;
      return Uint8Array.from({ length }, () => {
        state = (state * 48_271) % 2_147_483_647;
        return state & 255;
      });
    },
  });
  const seen = new Set(Array.from({ length: 1000 }, () => ids.next()));
  assert.equal(seen.size, 1000);
  for (const id of seen) assert.match(id, /^adm_[a-z2-7]{26}$/);
  assert.equal(draws, 4);
});
