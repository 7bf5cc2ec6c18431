// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { capabilityLimitBytes } from "@space/model";
import { capabilityKind, claimsToJson } from "./claims.ts";
import { sealToken } from "./jws.ts";
import { newSigningKey } from "./keys.ts";
import { claims, claimsJson, ringOf, signPayload } from "./signed.fixture.ts";
import { CapabilityVerifier, greatestMemoryLimit } from "./verifier.ts";

const key = newSigningKey();
const keys = ringOf(key);
const { token } = sealToken(capabilityKind, key, claimsToJson(claims));
const other = sealToken(capabilityKind, key, claimsToJson({ ...claims, issuer: "other" })).token;

it("R-13: says which of form, key and signature failed", () => {
  const verifier = new CapabilityVerifier({ keys });
  const forged = `${token.slice(0, -86)}${"A".repeat(86)}`;
  assert.deepEqual(
    [token, "x", sealToken(capabilityKind, newSigningKey(), claimsToJson(claims)).token, forged].map(
      (text) => {
        const { kind, reason } = { reason: undefined, ...verifier.verify(text) };
        return reason ?? kind;
      },
    ),
    ["verified", "form", "key", "signature"],
  );
});

it("R-6: refuses a capability of another type, of 4097 bytes, or with a claim too many", () => {
  const verifier = new CapabilityVerifier({ keys });
  const form = { kind: "refused", reason: "form" };
  assert.deepEqual(verifier.verify("x".repeat(capabilityLimitBytes + 1)), form);
  assert.deepEqual(
    verifier.verify(signPayload(key, JSON.stringify(claimsJson()), "space-exec-cert+jwt")),
    form,
  );
  assert.deepEqual(verifier.verify(signPayload(key, JSON.stringify({ ...claimsJson(), x: 1 }))), form);
});

it("R-11: remembers that exact bytes passed, with what they say, and nobody can change it", () => {
  const verifier = new CapabilityVerifier({ keys });
  const first = verifier.verify(token);
  assert.equal(verifier.verify(token), first);
  assert.ok(Object.isFrozen(first) && first.kind === "verified" && Object.isFrozen(first.capability));
});

it("R-11: remembers the whole token: a changed signature is not the same bytes", () => {
  const verifier = new CapabilityVerifier({ keys });
  verifier.verify(token);
  const flipped = token.at(-2) === "A" ? "B" : "A";
  const changed = `${token.slice(0, -2)}${flipped}${token.slice(-1)}`;
  assert.deepEqual(verifier.verify(changed), { kind: "refused", reason: "signature" });
});

it("R-11: remembers no more than its limit, and nothing with a limit of 0", () => {
  const small = new CapabilityVerifier({ keys, memoryLimit: 1 });
  const first = small.verify(token);
  small.verify(other);
  assert.notEqual(small.verify(token), first);
  const none = new CapabilityVerifier({ keys, memoryLimit: 0 });
  assert.notEqual(none.verify(token), none.verify(token));
});

it("R-10, R-11: empties its memory when the keys change, so that a removed key revokes at once", () => {
  const verifier = new CapabilityVerifier({ keys });
  assert.equal(verifier.verify(token).kind, "verified");
  verifier.replaceKeys(ringOf(newSigningKey()));
  assert.deepEqual(verifier.verify(token), { kind: "refused", reason: "key" });
  verifier.replaceKeys(keys);
  assert.equal(verifier.verify(token).kind, "verified");
});

it("a memory limit out of its bounds is a bug", () => {
  for (const memoryLimit of [-1, 0.5, greatestMemoryLimit + 1]) {
    assert.throws(() => new CapabilityVerifier({ keys, memoryLimit }), TypeError);
  }
});
