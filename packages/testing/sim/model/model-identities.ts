// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { admit, type CapabilityVerification, certificateDigest } from "@space/capability";
import {
  type CapabilityClaims,
  type Digest,
  type ExecutionCertificate,
  type ExecutionIdentity,
  freezeIdentity,
  parseActivationId,
  parseCapabilityId,
  parseGeneration,
  parseSandboxId,
  parseTenantId,
  parseWorkerId,
  type RuntimeRecord,
} from "@space/model";

/** Generations that a model goes through. */
export const generations = 3;

/** One generation on one worker. */
export interface Place {
  readonly generation: number;
  readonly worker: number;
}

const letters = "abcdefgh";
const sandboxId = parseSandboxId(`i${"m".repeat(20)}`);
const nowSeconds = 1_800_000_000;
const presenter = "presenter";

/** The identity of a generation that was placed there. */
export function identityOf({ generation, worker }: Place): ExecutionIdentity {
  const name = `${generation}@${worker}`;
  const known = identities.get(name) ?? makeIdentity({ generation, worker });
  identities.set(name, known);
  return known;
}

/** Made once: a search asks for the same few again and again. */
const identities = new Map<string, ExecutionIdentity>();
const digests = new Map<string, Digest>();

function makeIdentity({ generation, worker }: Place): ExecutionIdentity {
  return freezeIdentity({
    sandboxId,
    generation: parseGeneration(String(generation)),
    placement: {
      workerId: parseWorkerId(`wrk_${letters.charAt(worker).repeat(16)}`),
      substrate: "namespace",
    },
    activation: { id: parseActivationId(`act_${letters.charAt(generation).repeat(26)}`), attempt: 1 },
  });
}

export function certificateOf(place: Place): {
  readonly certificate: ExecutionCertificate;
  readonly token: string;
} {
  const certificate: ExecutionCertificate = {
    identity: identityOf(place),
    publicKey: "key",
    previous: null,
    restoredFrom: null,
    origin: { kind: "self" },
    issuedAtSeconds: nowSeconds,
  };
  return { certificate, token: `${place.generation}@${place.worker}` };
}

/** What a worker's store holds in a state of the model. */
export function recordOf(
  { generation, retired }: { readonly generation: number; readonly retired: boolean },
  worker: number,
): RuntimeRecord | undefined {
  if (generation === 0) return undefined;
  const { token } = certificateOf({ generation, worker });
  return {
    identity: identityOf({ generation, worker }),
    state: retired ? "retired" : "installed",
    certificate: token,
    certificateDigest: digestOf(token),
    epoch: 1n,
    hostBootId: "boot",
    evidence: "{}",
  };
}

function digestOf(token: string): Digest {
  const digest = digests.get(token) ?? certificateDigest(token);
  digests.set(token, digest);
  return digest;
}

const id = parseCapabilityId(`cap_${"c".repeat(26)}`);
const tenantId = parseTenantId(`ten_${"n".repeat(16)}`);

/** the comparator's own verdict on a good capability for this place. */
export function admitsAt(capability: Place, record: RuntimeRecord | undefined): boolean {
  const claims: CapabilityClaims = {
    issuer: "model",
    id,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + 120,
    identity: identityOf(capability),
    access: { purpose: "control", scopes: ["files:read"] },
    caller: { tenantId, principal: "key" },
    presenter,
  };
  const verification = { kind: "verified", capability: { claims } } as CapabilityVerification; // cast: its signature is not the model's matter
  const needed = { purpose: "control", scope: "files:read" } as const;
  const verdict = admit({
    verification,
    target: sandboxId,
    record,
    presenter,
    needed,
    nowMs: nowSeconds * 1000,
  });
  return verdict.kind === "match";
}
