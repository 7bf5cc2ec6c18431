// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { controlScopes, isSpaceError } from "@space/model";
import { CapabilityIssuer } from "./issuer.ts";
import { newSigningKey } from "./keys.ts";
import { claims, countingRandom, fixedClock, nowSeconds, ringOf } from "./signed.fixture.ts";
import { CapabilityVerifier } from "./verifier.ts";

const key = newSigningKey();
const { identity, access, caller, presenter } = claims;
const issuer = new CapabilityIssuer({ issuer: "space", key, clock: fixedClock, random: countingRandom });

it("R-7, R-9: issues all claims, for 120 s from the last whole second", () => {
  const issued = issuer.issue({ identity, access, caller, presenter });
  const { id, ...rest } = issued.claims;
  const { id: _id, ...expected } = claims;
  assert.deepEqual(rest, expected);
  assert.match(id, /^cap_/);
  assert.deepEqual([rest.issuedAtSeconds, rest.expiresAtSeconds], [nowSeconds, nowSeconds + 120]);
});

it("R-6: what it issues is verified, and the largest is well below the limit", () => {
  const issued = issuer.issue({
    identity,
    access: { purpose: "control", scopes: controlScopes },
    caller: { ...caller, principal: "x".repeat(128) },
    presenter,
  });
  const verified = new CapabilityVerifier({ keys: ringOf(key) }).verify(issued.token);
  assert.ok(verified.kind === "verified");
  assert.deepEqual(verified.capability.claims, issued.claims);
  assert.ok(issued.token.length < 2048);
});

it("takes of the caller what belongs into a capability and no more", () => {
  const wider = { ...caller, more: "x" };
  assert.deepEqual(issuer.issue({ identity, access, caller: wider, presenter }).claims.caller, caller);
});

it("issues nothing that no verifier would accept", () => {
  for (const change of [
    { presenter: "x" },
    { access: { purpose: "control", scopes: [] } as const },
    { caller: { ...caller, principal: "é" } },
  ]) {
    assert.throws(
      () => issuer.issue({ identity, access, caller, presenter, ...change }),
      (error) => isSpaceError(error, "input/invalid"),
    );
  }
});
