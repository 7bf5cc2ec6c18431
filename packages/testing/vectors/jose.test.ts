// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { CapabilityVerifier, importPublicKey, KeyRing, keyId } from "@space/capability";
import {
  CompactSign,
  calculateJwkThumbprint,
  compactVerify,
  decodeProtectedHeader,
  importJWK,
  type JWK,
  jwtVerify,
} from "jose";
import type { CapabilityVectors } from "../src/capability-vectors.ts";
import { fixedKey, keyOfSeed } from "../src/fixed-keys.ts";
import { typeOf } from "../src/token-vectors.ts";

const vectors = JSON.parse(
  readFileSync(new URL("capability.json", import.meta.url), "utf8"),
) as CapabilityVectors;
const jwk = (x: string): JWK => ({ kty: "OKP", crv: "Ed25519", x });
const allKeys = [vectors.root, ...vectors.keys, vectors.execution];
const ring = KeyRing.fromBundle(vectors.bundle, importPublicKey(vectors.root.publicKey));

it("R-6: jose computes the same key ids", async () => {
  for (const { kid, publicKey } of allKeys) assert.equal(await calculateJwkThumbprint(jwk(publicKey)), kid);
});

for (const { kind, name, token, expect } of vectors.tokens) {
  if (expect !== "verified") continue;
  it(`R-6: jose verifies what SPACE signs: ${kind}, ${name}`, async () => {
    const { kid } = decodeProtectedHeader(token);
    const key = await importJWK(jwk(allKeys.find((known) => known.kid === kid)?.publicKey ?? ""), "EdDSA");
    const { payload, protectedHeader } = await compactVerify(token, key, { algorithms: ["EdDSA"] });
    assert.deepEqual(protectedHeader, { alg: "EdDSA", typ: typeOf[kind], kid });
    assert.equal(Buffer.from(payload).toString("base64url"), token.split(".")[1]);
  });
}

it("R-7: jose reads a capability as a JWT with its standard claims", async () => {
  const token = vectors.tokens[0]?.token ?? "";
  const key = await importJWK(jwk(vectors.keys[0]?.publicKey ?? ""), "EdDSA");
  const { payload } = await jwtVerify(token, key, {
    issuer: "space",
    typ: typeOf.capability,
    currentDate: new Date(1_800_000_100_000),
    requiredClaims: ["jti", "iat", "exp", "cnf"],
  });
  assert.equal(payload.exp, 1_800_000_120);
});

it("R-6: SPACE verifies what jose signs, and the bytes are the same", async () => {
  const token = vectors.tokens[0]?.token ?? "";
  const signer = fixedKey("signer");
  const signed = await new CompactSign(Buffer.from(token.split(".")[1] ?? "", "base64url"))
    .setProtectedHeader({ alg: "EdDSA", typ: typeOf.capability, kid: signer.kid })
    .sign(signer.privateKey);
  assert.equal(signed, token);
  assert.equal(new CapabilityVerifier({ keys: ring }).verify(signed).kind, "verified");
});

it("RFC 8037 appendix A: key, thumbprint, signature, and the refusal of a token without type and key id", async () => {
  const d = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
  const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  const token =
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc." +
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
  const key = keyOfSeed(Buffer.from(d, "base64url"));
  const publicKey = importPublicKey(x);
  assert.ok(key.publicKey.equals(publicKey));
  assert.equal(keyId(publicKey), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  const [header, payload, signature = ""] = token.split(".");
  assert.ok(
    verify(null, Buffer.from(`${header}.${payload}`), publicKey, Buffer.from(signature, "base64url")),
  );
  await compactVerify(token, publicKey);
  assert.deepEqual(new CapabilityVerifier({ keys: ring }).verify(token), { kind: "refused", reason: "form" });
});
