// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type Access, controlScopes } from "@space/model";
import { capabilityKind } from "./claims.ts";
import { type OpenedToken, openToken } from "./jws.ts";
import { newSigningKey } from "./keys.ts";
import { claims, claimsJson, signPayload } from "./signed.fixture.ts";

const key = newSigningKey();
const open = (payload: unknown): OpenedToken<unknown> =>
  openToken(capabilityKind, signPayload(key, JSON.stringify(payload)), () => key.publicKey);
const read = (payload: unknown): unknown => {
  const opened = open(payload);
  return opened.kind === "opened" ? opened.value : opened.reason;
};

it("R-7: reads every claim, into values that cannot be changed", () => {
  const value = read(claimsJson()) as typeof claims;
  assert.deepEqual(value, claims);
  for (const part of [value, value.identity, value.identity.placement, value.access, value.caller]) {
    assert.ok(Object.isFrozen(part));
  }
  assert.ok(value.access.purpose === "control" && Object.isFrozen(value.access.scopes));
});

it("R-7, R-17: reads access to a service port", () => {
  const access: Access = { purpose: "service-port", port: 65_535, protocol: "h2c" };
  assert.deepEqual((read({ ...claimsJson(), access }) as typeof claims).access, access);
});

it("R-2, R-7: the identity may name a pod", () => {
  const sbx = {
    ...(claimsJson()["sbx"] as object),
    placement: { workerId: claims.identity.placement.workerId, substrate: "kubernetes", podUid: "a-1" },
  };
  assert.equal((read({ ...claimsJson(), sbx }) as typeof claims).identity.placement.podUid, "a-1");
});

it("R-6: every claim must be there, once, and no other", () => {
  for (const name of Object.keys(claimsJson())) {
    const { [name]: _left, ...rest } = claimsJson();
    assert.equal(read(rest), "form", name);
    const twice = JSON.stringify(claimsJson()).replace(
      "{",
      `{"${name}":${JSON.stringify(claimsJson()[name])},`,
    );
    assert.deepEqual(
      openToken(capabilityKind, signPayload(key, twice), () => key.publicKey),
      { kind: "refused", reason: "form" },
      name,
    );
  }
  assert.equal(read({ ...claimsJson(), nbf: 1 }), "form");
});

const control = (scopes: unknown): unknown => ({ purpose: "control", scopes });
const service = { purpose: "service-port", port: 80, protocol: "http" };
for (const [name, values] of Object.entries({
  iss: ["", 1, null, "é", "x".repeat(129)],
  jti: ["cap_x", "", 1],
  iat: ["1", 1.5, -1, null, 1e15],
  exp: ["1", 1.5, -1, null, 1e15],
  sbx: [
    null,
    {},
    [],
    { ...(claimsJson()["sbx"] as object), generation: 2 },
    { ...(claimsJson()["sbx"] as object), generation: "0" },
    { ...(claimsJson()["sbx"] as object), x: 1 },
  ],
  access: [
    null,
    "control",
    {},
    { purpose: "all" },
    { purpose: "control" },
    control([]),
    control("pty"),
    control(["pty", "pty"]),
    control(["files:all"]),
    control([1]),
    control([...controlScopes, "pty"]),
    { ...service, scopes: ["pty"] },
    { purpose: "control", scopes: ["pty"], port: 80 },
    { purpose: "service-port", port: 80 },
    { ...service, port: 0 },
    { ...service, port: 65_536 },
    { ...service, port: 8.5 },
    { ...service, port: "80" },
    { ...service, protocol: "ftp" },
  ],
  caller: [
    null,
    {},
    { tenantId: "x", principal: "p" },
    { ...claims.caller, principal: "" },
    { ...claims.caller, x: 1 },
  ],
  cnf: [null, {}, { "x5t#S256": "" }, { "x5t#S256": 1 }, { "x5t#S256": claims.presenter, jkt: "x" }],
})) {
  it(`R-6, R-7: refuses a \`${name}\` that is not of its form`, () => {
    for (const value of values)
      assert.equal(read({ ...claimsJson(), [name]: value }), "form", JSON.stringify(value));
  });
}
