// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError, parseDigest } from "@space/model";
import { signCertificate, signRetirement, verifyCertificate, verifyRetirement } from "./certificate.ts";
import { newSigningKey } from "./keys.ts";
import { certificate, identity, identityToJson, nowSeconds, ringOf, signPayload } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const execution = newSigningKey();
const first = certificate({ key: execution });
const digest = parseDigest("a".repeat(64));
const fork = certificate({
  key: execution,
  restoredFrom: digest,
  origin: { kind: "fork", parentManifest: digest },
});
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "certificate/refused") && error.details.problem === problem;

it("R-5: carries the whole certificate, into values that cannot be changed", () => {
  const restored = certificate({
    key: execution,
    identity: identity(2),
    previous: digest,
    restoredFrom: digest,
  });
  for (const signed of [first, fork, restored]) {
    const read = verifyCertificate(signCertificate(key, signed), ring);
    assert.deepEqual(read, signed);
    assert.ok(Object.isFrozen(read) && Object.isFrozen(read.origin));
  }
});

it("R-12: a receiver refuses a certificate or retirement that the control plane has not signed", () => {
  const stranger = newSigningKey();
  const retirement = { identity: identity(), issuedAtSeconds: nowSeconds };
  assert.throws(() => verifyCertificate(signCertificate(stranger, first), ring), refused("key"));
  assert.throws(() => verifyRetirement(signRetirement(stranger, retirement), ring), refused("key"));
  const forged = `${signCertificate(key, first).slice(0, -86)}${"A".repeat(86)}`;
  assert.throws(() => verifyCertificate(forged, ring), refused("signature"));
});

it("R-12: carries the whole retirement", () => {
  const retirement = { identity: identity(5), issuedAtSeconds: nowSeconds };
  assert.deepEqual(verifyRetirement(signRetirement(key, retirement), ring), retirement);
});

it("R-6: no kind of statement passes for another", () => {
  const retirement = signRetirement(key, { identity: identity(), issuedAtSeconds: nowSeconds });
  assert.throws(() => verifyCertificate(retirement, ring), refused("form"));
  assert.throws(() => verifyRetirement(signCertificate(key, first), ring), refused("form"));
});

it("R-5: the first execution has no previous one; a later attempt of it has", () => {
  assert.throws(
    () => signCertificate(key, { ...first, previous: digest }),
    (error) => isSpaceError(error, "input/invalid"),
  );
  signCertificate(key, { ...first, identity: identity(1, { attempt: 2 }), previous: digest });
});

it("R-5: an origin names exactly what generation 1 was restored from, and no later generation has one", () => {
  const other = parseDigest("b".repeat(64));
  for (const change of [
    { restoredFrom: null },
    { restoredFrom: other },
    { origin: { kind: "self" } },
    { identity: identity(2), previous: digest },
  ] as const) {
    assert.throws(
      () => signCertificate(key, { ...fork, ...change }),
      (error) => isSpaceError(error, "input/invalid"),
    );
  }
  signCertificate(key, { ...fork, identity: identity(1, { attempt: 2 }), previous: digest });
});

const json = {
  sbx: identityToJson(first.identity),
  publicKey: first.publicKey,
  previous: null,
  restoredFrom: null,
  origin: { kind: "self" },
  iat: nowSeconds,
};
for (const change of [
  { sbx: null },
  { publicKey: "x" },
  { publicKey: Buffer.alloc(32).toString("base64url") },
  { previous: "x" },
  { previous: undefined },
  { restoredFrom: 1 },
  { origin: "self" },
  { origin: {} },
  { origin: { kind: "self", parentManifest: digest } },
  { origin: { kind: "fork" } },
  { origin: { kind: "clone", parentManifest: digest } },
  { iat: 1.5 },
  { exp: 1 },
]) {
  it(`R-6: refuses a certificate with ${JSON.stringify(change)}`, () => {
    const token = signPayload(key, JSON.stringify({ ...json, ...change }), "space-exec-cert+jwt");
    assert.throws(() => verifyCertificate(token, ring), refused("form"));
  });
}

it("R-6: refuses a retirement that is not of its form", () => {
  for (const payload of [{}, { sbx: json.sbx, iat: "1" }, { sbx: json.sbx, iat: 1, x: 1 }]) {
    const token = signPayload(key, JSON.stringify(payload), "space-retire+jwt");
    assert.throws(() => verifyRetirement(token, ring), refused("form"));
  }
});
