// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError, type LeaseGrant, parseWorkerId } from "@space/model";
import { signRetirement, verifyRetirement } from "./certificate.ts";
import { newSigningKey } from "./keys.ts";
import { signLease, verifyLease } from "./lease.ts";
import { identity, nowSeconds, ringOf, signPayload } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const grant: LeaseGrant = {
  workerId: parseWorkerId(`wrk_${"w".repeat(16)}`),
  nonce: Buffer.alloc(16, 7).toString("base64url"),
  termSeconds: 60,
  position: 12,
  issuedAtSeconds: nowSeconds,
};
const json = { worker: grant.workerId, nonce: grant.nonce, term: 60, position: 12, iat: nowSeconds };
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "lease/refused") && error.details.problem === problem;
const signed = (payload: object): string => signPayload(key, JSON.stringify(payload), "space-lease+jwt");

it("R-16: carries the whole grant, into a value that cannot be changed", () => {
  const read = verifyLease(signLease(key, grant), ring);
  assert.deepEqual(read, grant);
  assert.ok(Object.isFrozen(read));
});

it("R-16: a grant that the control plane has not signed is refused", () => {
  assert.throws(() => verifyLease(signLease(newSigningKey(), grant), ring), refused("key"));
  const forged = `${signLease(key, grant).slice(0, -86)}${"A".repeat(86)}`;
  assert.throws(() => verifyLease(forged, ring), refused("signature"));
});

it("R-6, R-16: no other statement passes for a lease, nor a lease for another", () => {
  const retirement = signRetirement(key, { identity: identity(), issuedAtSeconds: nowSeconds });
  assert.throws(() => verifyLease(retirement, ring), refused("form"));
  assert.throws(() => verifyRetirement(signLease(key, grant), ring), { code: "certificate/refused" });
});

it("R-16: a term outside its bounds is refused whoever signed it", () => {
  verifyLease(signed({ ...json, term: 15 }), ring);
  verifyLease(signed({ ...json, term: 120 }), ring);
  for (const term of [14, 121, 60.5, "60", -1, null]) {
    assert.throws(() => verifyLease(signed({ ...json, term }), ring), refused("form"), String(term));
  }
});

it("R-6, R-16: a grant of any other form is refused", () => {
  const { nonce: _nonce, ...without } = json;
  const bad: readonly object[] = [
    without,
    { ...json, more: 1 },
    { ...json, nonce: "AAAAAAAAAAAAAAAAAAAAAB" },
    { ...json, nonce: "short" },
    { ...json, worker: "worker" },
    { ...json, position: -1 },
    { ...json, iat: 1.5 },
  ];
  for (const payload of bad) assert.throws(() => verifyLease(signed(payload), ring), refused("form"));
});
