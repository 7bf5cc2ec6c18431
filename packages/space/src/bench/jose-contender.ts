// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { publicKeyText } from "@space/capability";
import { CompactSign, compactVerify, importJWK, type JWK, type JWTHeaderParameters } from "jose";
import type { CapabilityScene } from "./capability-scene.ts";

/** Keys as `jose` likes them best, and the header that SPACE writes. */
export interface JoseKeys {
  readonly publicKey: Awaited<ReturnType<typeof importJWK>>;
  readonly privateKey: CapabilityScene["key"]["privateKey"];
  readonly header: JWTHeaderParameters;
}

export async function joseKeys({ key }: CapabilityScene): Promise<JoseKeys> {
  const jwk: JWK = { kty: "OKP", crv: "Ed25519", x: publicKeyText(key.publicKey) };
  return {
    publicKey: await importJWK(jwk, "EdDSA"),
    privateKey: key.privateKey,
    header: { alg: "EdDSA", typ: "space-cap+jwt", kid: key.kid },
  };
}

export function joseSign({ privateKey, header }: JoseKeys, payload: Uint8Array): Promise<string> {
  return new CompactSign(payload).setProtectedHeader(header).sign(privateKey);
}

/** Signature and JSON, and nothing of what a capability must be besides. */
export async function joseVerify({ publicKey }: JoseKeys, token: string): Promise<boolean> {
  const { payload } = await compactVerify(token, publicKey, { algorithms: ["EdDSA"] });
  const claims: unknown = JSON.parse(Buffer.from(payload).toString());
  return typeof claims === "object" && claims !== null;
}
