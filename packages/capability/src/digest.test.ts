// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";
import { parseDigest } from "@space/model";
import { certificateDigest, manifestDigest, recordSetDigest, routeDigest } from "./digest.ts";
import { identity, otherSandboxId, sandboxId } from "./signed.fixture.ts";

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

it("R-16: a record set has one digest in any order, and every difference of (sandbox, identity, state) shows", () => {
  const [one, two] = [identity(1), identity(2, { sandbox: otherSandboxId })];
  const manifest = parseDigest("a".repeat(64));
  const frozen = [{ sandboxId, manifest }];
  const same = recordSetDigest({ installed: [one, two], frozen });
  assert.equal(recordSetDigest({ installed: [two, one], frozen }), same);
  const others = [
    { installed: [one], frozen },
    { installed: [one, identity(3, { sandbox: otherSandboxId })], frozen },
    { installed: [identity(1, { attempt: 2 }), two], frozen },
    { installed: [one, two], frozen: [] },
    { installed: [one, two], frozen: [{ sandboxId: otherSandboxId, manifest }] },
    { installed: [one, two], frozen: [{ sandboxId, manifest: parseDigest("b".repeat(64)) }] },
    { installed: [], frozen: [] },
  ].map(recordSetDigest);
  assert.equal(new Set([same, ...others]).size, 8);
});
