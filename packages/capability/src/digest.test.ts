// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";
import { certificateDigest, manifestDigest, routeDigest } from "./digest.ts";
import { identity } from "./signed.fixture.ts";

it("R-5: a link's name is the SHA-256 of the token's exact bytes", () => {
  const expected = createHash("sha256").update("a.b.c").digest("hex");
  assert.deepEqual([certificateDigest("a.b.c"), manifestDigest("a.b.c")], [expected, expected]);
});

it("R-14: equal identities have equal digests, and every difference shows", () => {
  const same = routeDigest(identity());
  assert.equal(routeDigest({ ...identity() }), same);
  const others = [
    identity(3),
    identity(2, { worker: "z" }),
    identity(2, { activation: "z" }),
    identity(2, { attempt: 2 }),
  ].map(routeDigest);
  assert.equal(new Set([same, ...others]).size, 5);
});
