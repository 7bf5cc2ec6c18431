// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError, type OriginGrant, parseDigest, parseTenantId } from "@space/model";
import { signCertificate } from "./certificate.ts";
import { newSigningKey } from "./keys.ts";
import { signOriginGrant, verifyOriginGrant } from "./origin-grant.ts";
import { certificate, nowSeconds, ringOf, sandboxId, signPayload } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const parentManifest = parseDigest("a".repeat(64));
const grant: OriginGrant = {
  sandboxId,
  tenantId: parseTenantId(`ten_${"n".repeat(16)}`),
  origin: { kind: "fork", parentManifest },
  issuedAtSeconds: nowSeconds,
};
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "chain/refused") &&
  error.details.link === "origin" &&
  error.details.problem === problem;

it("R-5: says which sandbox, of which tenant, begins with which manifest", () => {
  for (const kind of ["fork", "template"] as const) {
    const granted = { ...grant, origin: { kind, parentManifest } };
    assert.deepEqual(verifyOriginGrant(signOriginGrant(key, granted), ring), granted);
  }
});

it("R-5: nobody but the control plane says so, and in no other statement", () => {
  assert.throws(() => verifyOriginGrant(signOriginGrant(newSigningKey(), grant), ring), refused("key"));
  const token = signOriginGrant(key, grant);
  assert.throws(
    () => verifyOriginGrant(`${token.slice(0, -86)}${"A".repeat(86)}`, ring),
    refused("signature"),
  );
  const other = signCertificate(key, certificate({ key: newSigningKey() }));
  assert.throws(() => verifyOriginGrant(other, ring), refused("form"));
});

const json = { sandboxId, tenantId: grant.tenantId, origin: grant.origin, iat: nowSeconds };
for (const change of [
  { sandboxId: "x" },
  { tenantId: undefined },
  { origin: undefined },
  { origin: { kind: "self" } },
  { origin: { kind: "fork" } },
  { origin: { kind: "fork", parentManifest, more: 1 } },
  { iat: -1 },
  { exp: 1 },
]) {
  it(`R-6: refuses an origin with ${JSON.stringify(change)}`, () => {
    const token = signPayload(key, JSON.stringify({ ...json, ...change }), "space-origin+jwt");
    assert.throws(() => verifyOriginGrant(token, ring), refused("form"));
  });
}
