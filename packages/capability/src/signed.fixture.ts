// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// For tests: an installation's keys, one sandbox's identities, and tokens of any form under a good signature.

import { sign } from "node:crypto";
import {
  type CapabilityClaims,
  type Clock,
  type ExecutionCertificate,
  type ExecutionIdentity,
  freezeIdentity,
  type Generation,
  identityToJson,
  parseActivationId,
  parseCapabilityId,
  parseGeneration,
  parseSandboxId,
  parseTenantId,
  parseTenantKeyId,
  parseWorkerId,
  type Random,
  type RuntimeRecord,
} from "@space/model";
import { claimsToJson } from "./claims.ts";
import { certificateDigest } from "./digest.ts";
import { KeyRing, signKeyBundle } from "./key-ring.ts";
import { newSigningKey, publicKeyText, type SigningKey } from "./keys.ts";

export const nowSeconds = 1_800_000_000;

export const fixedClock: Clock = {
  wallMs: () => nowSeconds * 1000 + 900,
  monotonicMs: () => 0,
  after: () => () => undefined,
};

export const countingRandom: Random = { bytes: (length) => new Uint8Array(length).map((_, at) => at) };

export function bundle(root: SigningKey, version: number, keys: readonly SigningKey[]): string {
  return signKeyBundle(root, {
    version,
    issuedAtSeconds: nowSeconds,
    keys: keys.map(({ kid, publicKey }) => ({ kid, publicKey: publicKeyText(publicKey) })),
  });
}

export function ringOf(...keys: readonly SigningKey[]): KeyRing {
  const root = newSigningKey();
  return KeyRing.fromBundle(bundle(root, 1, keys), root.publicKey);
}

export const sandboxId = parseSandboxId(`i${"s".repeat(20)}`);
export const otherSandboxId = parseSandboxId(`i${"t".repeat(20)}`);
/** The version of the tenant's key that manifests name. */
export const tenantKeyId = parseTenantKeyId(`tky_${"k".repeat(26)}`);
export const presenter: string = Buffer.alloc(32, 1).toString("base64url");

const letters = "abcdefghijklmnopqrstuvwxyz";

/** The identity of a generation; what is not said depends on the generation alone. */
export function identity(
  generation: number | Generation = 2,
  change: {
    attempt?: number;
    activation?: string;
    worker?: string;
    sandbox?: ExecutionIdentity["sandboxId"];
  } = {},
): ExecutionIdentity {
  const letter = letters.charAt(Number(generation) % 26);
  const { attempt = 1, activation = letter, worker = letter, sandbox = sandboxId } = change;
  return freezeIdentity({
    sandboxId: sandbox,
    generation: parseGeneration(generation.toString()),
    placement: { workerId: parseWorkerId(`wrk_${worker.repeat(16)}`), substrate: "namespace" },
    activation: { id: parseActivationId(`act_${activation.repeat(26)}`), attempt },
  });
}

export const claims: CapabilityClaims = {
  issuer: "space",
  id: parseCapabilityId(`cap_${"c".repeat(26)}`),
  issuedAtSeconds: nowSeconds,
  expiresAtSeconds: nowSeconds + 120,
  identity: identity(),
  access: { purpose: "control", scopes: ["files:read", "pty"] },
  caller: { tenantId: parseTenantId(`ten_${"n".repeat(16)}`), principal: "key_1" },
  presenter,
};

/** A compact JWS of exactly these texts, well signed. */
export function signTexts(key: SigningKey, header: string | Buffer, payload: string | Buffer): string {
  const signed = `${Buffer.from(header).toString("base64url")}.${Buffer.from(payload).toString("base64url")}`;
  return `${signed}.${sign(null, Buffer.from(signed), key.privateKey).toString("base64url")}`;
}

export function headerText(key: SigningKey, typ: string): string {
  return `{"alg":"EdDSA","typ":"${typ}","kid":"${key.kid}"}`;
}

/** A well signed capability with another payload. */
export function signPayload(key: SigningKey, payload: string | Buffer, typ = "space-cap+jwt"): string {
  return signTexts(key, headerText(key, typ), payload);
}

/** The JSON form of the claims, to be changed by a test. */
export function claimsJson(): Record<string, unknown> {
  return { ...claimsToJson(claims) };
}

export function record(
  installed: ExecutionIdentity,
  state: RuntimeRecord["state"] = "installed",
): RuntimeRecord {
  return {
    identity: installed,
    state,
    certificate: "",
    certificateDigest: certificateDigest(""),
    epoch: 1n,
    hostBootId: "boot",
    evidence: "{}",
  };
}

export function certificate(
  change: Partial<ExecutionCertificate> & { readonly key: SigningKey },
): ExecutionCertificate {
  const { key, ...rest } = change;
  return {
    identity: identity(1),
    publicKey: publicKeyText(key.publicKey),
    previous: null,
    restoredFrom: null,
    origin: { kind: "self" },
    issuedAtSeconds: nowSeconds,
    ...rest,
  };
}

export { identityToJson };
