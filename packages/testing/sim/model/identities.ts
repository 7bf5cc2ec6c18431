// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { admit, type CapabilityVerification, certificateDigest } from "@space/capability";
import {
  type CapabilityClaims,
  type Digest,
  type ExecutionCertificate,
  type ExecutionIdentity,
  freezeIdentity,
  type IdentityVerdict,
  parseActivationId,
  parseCapabilityId,
  parseGeneration,
  parseSandboxId,
  parseTenantId,
  parseWorkerId,
  type RuntimeRecord,
} from "@space/model";

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

/** What a worker's store holds in a state of the model; generation 0: nothing. */
export function recordOf({
  generation,
  isRetired,
  worker,
}: Place & { readonly isRetired: boolean }): RuntimeRecord | undefined {
  if (generation === 0) return undefined;
  const { token } = certificateOf({ generation, worker });
  return {
    identity: identityOf({ generation, worker }),
    state: isRetired ? "retired" : "installed",
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
export function verdictOn(capability: Place, record: RuntimeRecord | undefined): IdentityVerdict["kind"] {
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
  return admit({
    verification,
    target: sandboxId,
    record,
    presenter,
    needed,
    nowMs: nowSeconds * 1000,
  }).kind;
}
