// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError, parseDigest, type SnapshotManifest, snapshotChunkLimit } from "@space/model";
import { manifestDigest } from "./digest.ts";
import { newSigningKey } from "./keys.ts";
import {
  countersignManifest,
  readStoredManifest,
  signManifest,
  verifyCountersigned,
  verifyManifest,
} from "./manifest.ts";
import { identity, identityToJson, nowSeconds, ringOf, signPayload, tenantKeyId } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const execution = newSigningKey();
const digest = parseDigest("a".repeat(64));
const manifest: SnapshotManifest = {
  version: 3,
  identity: identity(),
  certificate: digest,
  previousManifest: null,
  chain: digest,
  keyId: tenantKeyId,
  substrate: "namespace",
  memory: "none",
  filesystem: [{ digest, sizeBytes: 4 }],
  createdAtSeconds: nowSeconds,
};
const refused = (problem: string) => (error: unknown) =>
  isSpaceError(error, "snapshot/refused") && error.details.problem === problem;

it("R-5: carries the whole manifest under the execution's key", () => {
  for (const signed of [
    manifest,
    { ...manifest, filesystem: [], previousManifest: digest, memory: "frozen-on-worker" as const },
    { ...manifest, memory: "in-snapshot" as const },
  ]) {
    const read = verifyManifest(signManifest(execution, signed), execution.publicKey);
    assert.deepEqual(read, signed);
    assert.ok(Object.isFrozen(read) && Object.isFrozen(read.filesystem));
  }
});

it("R-5: the control plane's signature is around the very bytes that the execution signed", () => {
  const signed = signManifest(execution, manifest);
  assert.equal(verifyCountersigned(countersignManifest(key, signed), ring), signed);
});

it("R-5: neither signature stands for the other", () => {
  const signed = signManifest(execution, manifest);
  assert.throws(() => verifyManifest(signed, newSigningKey().publicKey), refused("key"));
  assert.throws(
    () => verifyManifest(`${signed.slice(0, -86)}${"A".repeat(86)}`, execution.publicKey),
    refused("signature"),
  );
  assert.throws(() => verifyCountersigned(countersignManifest(execution, signed), ring), refused("key"));
  assert.throws(() => verifyCountersigned(signed, ring), refused("form"));
  assert.throws(
    () => verifyManifest(countersignManifest(execution, signed), execution.publicKey),
    refused("form"),
  );
});

it("has room for the largest snapshot, twice signed", () => {
  const filesystem = Array.from({ length: snapshotChunkLimit }, () => ({ digest, sizeBytes: 4_194_304 }));
  const signed = signManifest(execution, { ...manifest, filesystem });
  assert.equal(verifyCountersigned(countersignManifest(key, signed), ring), signed);
  assert.throws(
    () => signManifest(execution, { ...manifest, filesystem: [...filesystem, { digest, sizeBytes: 1 }] }),
    (error) => isSpaceError(error, "input/invalid"),
  );
});

const json = {
  version: 3,
  sbx: identityToJson(manifest.identity),
  certificate: digest,
  previousManifest: null,
  chain: digest,
  keyId: tenantKeyId,
  substrate: "namespace",
  memory: "none",
  filesystem: [],
  iat: nowSeconds,
};
for (const change of [
  { version: "3" },
  { version: 0 },
  { keyId: "key" },
  { chain: null },
  { sbx: {} },
  { certificate: "x" },
  { previousManifest: 1 },
  { substrate: "qemu" },
  { memory: "all" },
  { filesystem: {} },
  { filesystem: [{ digest }] },
  { filesystem: [{ digest, sizeBytes: 0 }] },
  { filesystem: [{ digest: "x", sizeBytes: 1 }] },
  { iat: null },
  { kernel: "x" },
]) {
  it(`R-6: refuses a manifest with ${JSON.stringify(change)}`, () => {
    const token = signPayload(execution, JSON.stringify({ ...json, ...change }), "space-manifest+jws");
    assert.throws(() => verifyManifest(token, execution.publicKey), refused("form"));
  });
}

it("R-6: refuses a countersignature around something else", () => {
  for (const payload of [{}, { manifest: 1 }, { manifest: "x", y: 1 }]) {
    const token = signPayload(key, JSON.stringify(payload), "space-countersigned-manifest+jws");
    assert.throws(() => verifyCountersigned(token, ring), refused("form"));
  }
});

it("R-6: one of an earlier or a future version is refused as that, whatever else is in it, and only under the right key", () => {
  for (const version of [1, 2, 4]) {
    const token = signPayload(execution, JSON.stringify({ version, brand: "new" }), "space-manifest+jws");
    const refusal = { code: "snapshot/version", details: { version } };
    assert.throws(() => verifyManifest(token, execution.publicKey), refusal);
    assert.throws(() => verifyManifest(token, newSigningKey().publicKey), refused("key"));
    assert.throws(() => readStoredManifest(countersignManifest(key, token), manifestDigest(token)), refusal);
  }
});

it("a stored manifest is read when it is the one that its digest names", () => {
  const signed = signManifest(execution, manifest);
  const stored = countersignManifest(key, signed);
  assert.deepEqual(readStoredManifest(stored, manifestDigest(signed)), manifest);
  assert.throws(() => readStoredManifest(stored, digest), refused("digest"));
  assert.throws(() => readStoredManifest(signed, manifestDigest(signed)), refused("form"));
});
