// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import {
  admit,
  CapabilityVerifier,
  certificateDigest,
  importPublicKey,
  KeyRing,
  verifyCertificate,
  verifyCountersigned,
  verifyHandOverGrant,
  verifyManifest,
  verifyOriginGrant,
  verifyRetirement,
} from "@space/capability";
import {
  isSpaceError,
  type NeededAccess,
  parseIdentity,
  parseSandboxId,
  type RuntimeRecord,
} from "@space/model";
import type { AdmissionVector } from "../src/admission-vectors.ts";
import { type CapabilityVectors, capabilityVectorsText } from "../src/capability-vectors.ts";
import type { TokenVector } from "../src/token-vectors.ts";

const file = readFileSync(new URL("capability.json", import.meta.url), "utf8");
const vectors = JSON.parse(file) as CapabilityVectors;
const root = importPublicKey(vectors.root.publicKey);
const ring = KeyRing.fromBundle(vectors.bundle, root);
const verifier = new CapabilityVerifier({ keys: ring });

it("the checked-in vectors are the ones that the program makes", () => {
  assert.equal(file, capabilityVectorsText());
});

/** What this implementation says of a token. */
function judge({ kind, token, minVersion }: TokenVector): unknown {
  const verification = kind === "capability" ? verifier.verify(token) : undefined;
  if (verification?.kind === "refused") return verification.reason;
  try {
    switch (kind) {
      case "capability":
        return "verified";
      case "bundle":
        return KeyRing.fromBundle(token, root, minVersion) && "verified";
      case "certificate":
        return verifyCertificate(token, ring) && "verified";
      case "handOver":
        return verifyHandOverGrant(token, ring) && "verified";
      case "origin":
        return verifyOriginGrant(token, ring) && "verified";
      case "retirement":
        return verifyRetirement(token, ring) && "verified";
      case "manifest":
        return verifyManifest(token, importPublicKey(vectors.execution.publicKey)) && "verified";
      case "countersigned":
        return verifyCountersigned(token, ring) && "verified";
      default:
        return kind satisfies never;
    }
  } catch (error) {
    if (isSpaceError(error, "bundle/rollback")) return "older version";
    assert.ok(isSpaceError(error) && "problem" in error.details, String(error));
    return error.details.problem;
  }
}

for (const vector of vectors.tokens) {
  it(`${vector.rule}: ${vector.kind}, ${vector.name}: ${vector.expect}`, () => {
    assert.equal(judge(vector), vector.expect);
  });
}

function recordOf({ record }: AdmissionVector): RuntimeRecord | undefined {
  if (record === null) return undefined;
  return {
    identity: parseIdentity(record.identity),
    state: record.state,
    certificate: "",
    certificateDigest: certificateDigest(""),
    epoch: 1n,
    hostBootId: "",
    evidence: "",
  };
}

for (const vector of vectors.admissions) {
  it(`${vector.rule}: ${vector.name}: ${vector.verdict}`, () => {
    const { needed } = vector;
    const scope = needed.purpose === "control" ? (needed.scope ?? undefined) : undefined;
    const verdict = admit({
      verification: verifier.verify(vector.token),
      target: parseSandboxId(vector.target),
      record: recordOf(vector),
      presenter: vector.presenter,
      needed: (needed.purpose === "control" ? { ...needed, scope } : needed) as NeededAccess,
      nowMs: vector.nowMs,
    });
    assert.deepEqual(
      [verdict.kind, verdict.kind === "match" ? null : verdict.reason],
      [vector.verdict, vector.reason],
    );
  });
}

it("there is a vector for every verdict, every refusal and every kind", () => {
  const count = (values: readonly string[]): number => new Set(values).size;
  assert.deepEqual(
    [
      count(vectors.tokens.map(({ kind }) => kind)),
      count(vectors.tokens.map(({ expect }) => expect)),
      count(vectors.admissions.map(({ verdict, reason }) => `${verdict} ${reason}`)),
    ],
    [8, 6, 16],
  );
});
