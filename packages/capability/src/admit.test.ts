// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Access, CapabilityClaims, IdentityVerdict, NeededAccess } from "@space/model";
import { type Admission, admit } from "./admit.ts";
import { capabilityKind, claimsToJson } from "./claims.ts";
import { sealToken } from "./jws.ts";
import { newSigningKey } from "./keys.ts";
import {
  claims,
  identity,
  nowSeconds,
  otherSandboxId,
  presenter,
  record,
  ringOf,
  sandboxId,
} from "./signed.fixture.ts";
import { CapabilityVerifier } from "./verifier.ts";

const key = newSigningKey();
const verifier = new CapabilityVerifier({ keys: ringOf(key) });
const verify = (change: Partial<CapabilityClaims>): Admission["verification"] =>
  verifier.verify(sealToken(capabilityKind, key, claimsToJson({ ...claims, ...change })).token);

const good: Admission = {
  verification: verify({}),
  target: sandboxId,
  record: record(identity()),
  presenter,
  needed: { purpose: "control", scope: "pty" },
  nowMs: nowSeconds * 1000,
};

const verdict = (change: Partial<Admission> = {}, said: Partial<CapabilityClaims> = {}): IdentityVerdict =>
  admit({ ...good, verification: verify(said), ...change });
const reason = (change?: Partial<Admission>, said?: Partial<CapabilityClaims>): string => {
  const got = verdict(change, said);
  return got.kind === "match" ? "match" : `${got.kind} ${got.reason}`;
};

it("R-13: identical identity: match, with the installed identity", () => {
  assert.deepEqual(verdict(), { kind: "match", identity: identity() });
});

it("R-13: form, key and signature deny before anything else", () => {
  for (const why of ["form", "key", "signature"] as const) {
    assert.equal(
      reason({ verification: { kind: "refused", reason: why }, presenter: "", record: undefined }),
      `deny ${why}`,
    );
  }
});

for (const [afterMs, expected] of [
  [-15_001, "deny not-yet"],
  [-15_000, "match"],
  [0, "match"],
  [119_900, "match"],
  [120_000, "match"],
  [134_900, "match"],
  [134_999, "match"],
  [135_000, "deny expired"],
  [Number.NaN, "deny expired"],
] as const) {
  it(`R-9: ${afterMs / 1000} s after its issue: ${expected}`, () => {
    assert.equal(reason({ nowMs: nowSeconds * 1000 + afterMs }), expected);
  });
}

it("R-15: what the receiver has not heard of still matches, for 150 s at the worst clocks and no longer", () => {
  const fastSigner = { issuedAtSeconds: nowSeconds + 15, expiresAtSeconds: nowSeconds + 135 };
  const at = (afterMs: number, heard: "installed" | "retired"): string =>
    reason({ nowMs: nowSeconds * 1000 + afterMs, record: record(identity(), heard) }, fastSigner);
  assert.deepEqual(
    [0, 149_999, 150_000].map((afterMs) => at(afterMs, "installed")),
    ["match", "match", "deny expired"],
  );
  assert.equal(at(0, "retired"), "refresh-route retired");
});

it("R-9: a lifetime above 120 s is refused whoever signed it, and one that is none", () => {
  const until = (seconds: number): string => reason({}, { expiresAtSeconds: nowSeconds + seconds });
  assert.deepEqual([121, 120, 1, 0, -1].map(until), [
    "deny lifetime",
    "match",
    "match",
    "deny lifetime",
    "deny lifetime",
  ]);
});

it("R-7: another presenter is denied", () => {
  assert.equal(reason({ presenter: Buffer.alloc(32, 2).toString("base64url") }), "deny presenter");
});

const service = (port: number, protocol: "http" | "tcp"): Access & NeededAccess => ({
  purpose: "service-port",
  port,
  protocol,
});
it("R-8: the scope must be held, and an operation in no table is denied", () => {
  const needs = (scope: "pty" | "files:read" | "files:write" | undefined): string =>
    reason({ needed: { purpose: "control", scope } });
  assert.deepEqual(
    [needs("pty"), needs("files:read"), needs("files:write"), needs(undefined)],
    ["match", "match", "deny scope", "deny scope"],
  );
});

it("R-17: port and protocol must be the very ones", () => {
  const needs = (needed: NeededAccess): string => reason({ needed }, { access: service(80, "http") });
  assert.deepEqual(
    [needs(service(80, "http")), needs(service(81, "http")), needs(service(80, "tcp"))],
    ["match", "deny port", "deny protocol"],
  );
});

it("R-13: the purpose must be the very one", () => {
  assert.equal(reason({ needed: service(80, "http") }), "deny purpose");
  assert.equal(reason({}, { access: service(80, "http") }), "deny purpose");
});

it("R-13: a capability for another sandbox than the target is denied, whatever the record says", () => {
  const other = identity(2, { sandbox: otherSandboxId });
  for (const kept of [record(identity()), record(other), undefined]) {
    assert.equal(reason({ record: kept }, { identity: other }), "deny other-sandbox");
  }
});

it("R-13: a record of another sandbox than the target is never served from", () => {
  assert.equal(reason({ record: record(identity(2, { sandbox: otherSandboxId })) }), "deny other-sandbox");
});

it("R-13: same sandbox, another execution: refresh-route, with the rejected route", () => {
  for (const [installed, why] of [
    [identity(3), "older-generation"],
    [identity(1), "newer-generation"],
    [identity(2, { worker: "z" }), "other-placement"],
    [identity(2, { activation: "z" }), "other-activation"],
    [identity(2, { attempt: 2 }), "other-activation"],
  ] as const) {
    assert.deepEqual(verdict({ record: record(installed) }), {
      kind: "refresh-route",
      reason: why,
      rejected: identity(),
    });
  }
});

it("R-13: not installed here, or retired here: refresh-route", () => {
  const rejected = identity();
  assert.deepEqual(verdict({ record: undefined }), {
    kind: "refresh-route",
    reason: "not-installed",
    rejected,
  });
  for (const installed of [identity(1), identity(2), identity(3)]) {
    const kept = record(installed, "retired");
    assert.deepEqual(verdict({ record: kept }), { kind: "refresh-route", reason: "retired", rejected });
  }
});

it("R-13: the first check that fails decides, in the order of the rule", () => {
  const spoiled: [string, Partial<Admission>, Partial<CapabilityClaims>][] = [
    ["deny lifetime", {}, { expiresAtSeconds: nowSeconds + 121 }],
    ["deny presenter", { presenter: "" }, {}],
    ["deny scope", { needed: { purpose: "control", scope: undefined } }, {}],
    ["deny other-sandbox", {}, { identity: identity(2, { sandbox: otherSandboxId }) }],
    ["refresh-route not-installed", { record: undefined }, {}],
  ];
  for (let first = spoiled.length - 1; first >= 0; first -= 1) {
    const failing = spoiled.slice(first);
    const change = Object.assign({}, ...failing.map(([, changed]) => changed)) as Partial<Admission>;
    const said = Object.assign({}, ...failing.map(([, , claimed]) => claimed)) as Partial<CapabilityClaims>;
    assert.equal(reason(change, said), failing[0]?.[0]);
  }
});

it("R-11: it decides on the present record, not on what it said before", () => {
  const kept = verify({});
  assert.equal(admit({ ...good, verification: kept }).kind, "match");
  assert.equal(
    admit({ ...good, verification: kept, record: record(identity(), "retired") }).kind,
    "refresh-route",
  );
  assert.equal(admit({ ...good, verification: kept, nowMs: nowSeconds * 1000 + 135_000 }).kind, "deny");
});
