// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  type HandOverGrant,
  identityToJson,
  isSpaceError,
  longestHandOverSeconds,
  parseDigest,
  parseWorkerId,
} from "@space/model";
import { signCertificate } from "./certificate.ts";
import { signHandOverGrant, verifyHandOverGrant } from "./hand-over-grant.ts";
import { newSigningKey } from "./keys.ts";
import { certificate, identity, nowSeconds, ringOf, signPayload } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const grant: HandOverGrant = {
  identity: identity(),
  manifest: parseDigest("a".repeat(64)),
  target: parseWorkerId(`wrk_${"t".repeat(16)}`),
  issuedAtSeconds: nowSeconds,
  expiresAtSeconds: nowSeconds + longestHandOverSeconds,
};
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "hand-over/refused") && error.details.problem === problem;

it("R-6: says who may read which snapshot of which execution, and until when", () => {
  assert.deepEqual(verifyHandOverGrant(signHandOverGrant(key, grant), ring), grant);
});

it("R-6: nobody but the control plane says so, and in no other statement", () => {
  assert.throws(() => verifyHandOverGrant(signHandOverGrant(newSigningKey(), grant), ring), refused("key"));
  const token = signHandOverGrant(key, grant);
  const forged = `${token.slice(0, -86)}${"A".repeat(86)}`;
  assert.throws(() => verifyHandOverGrant(forged, ring), refused("signature"));
  const other = signCertificate(key, certificate({ key: newSigningKey() }));
  assert.throws(() => verifyHandOverGrant(other, ring), refused("form"));
});

const json = {
  sbx: identityToJson(grant.identity),
  manifest: grant.manifest,
  target: grant.target,
  iat: nowSeconds,
  exp: nowSeconds + 60,
};
for (const [what, change] of Object.entries({
  "without an execution": { sbx: undefined },
  "without a manifest": { manifest: undefined },
  "of another manifest's form": { manifest: "x" },
  "without a target": { target: undefined },
  "of a target that is no worker": { target: "gateway" },
  "of the giver as its own target": { target: grant.identity.placement.workerId },
  "that lives 121 s": { exp: nowSeconds + longestHandOverSeconds + 1 },
  "that is over when it begins": { exp: nowSeconds },
  "without an end": { exp: undefined },
  "with one member more": { nbf: nowSeconds },
})) {
  it(`R-6: refuses a grant ${what}`, () => {
    const token = signPayload(key, JSON.stringify({ ...json, ...change }), "space-hand-over+jwt");
    assert.throws(() => verifyHandOverGrant(token, ring), refused("form"));
  });
}
