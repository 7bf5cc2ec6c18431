// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import {
  type Admission,
  CapabilityIssuer,
  certificateDigest,
  KeyRing,
  newSigningKey,
  publicKeyText,
  type SigningKey,
  signKeyBundle,
} from "@space/capability";
import {
  type Clock,
  type ExecutionIdentity,
  freezeIdentity,
  newActivationId,
  newSandboxId,
  newTenantId,
  newWorkerId,
  parseGeneration,
  type RuntimeRecord,
} from "@space/model";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";

/** Distinct tokens, all held by the verifier's memory at once. */
const tokenCount = 1_000;

/** A token as whoever has already taken it apart would have it. */
export interface TokenPieces {
  readonly signed: Buffer;
  readonly payload: Buffer;
  readonly signature: Buffer;
}

/** Keys, one execution with its record, and capabilities for it. */
export interface CapabilityScene {
  readonly key: SigningKey;
  readonly ring: KeyRing;
  /** The same bundle's successor, without the key. */
  readonly ringAfterRevocation: KeyRing;
  readonly identity: ExecutionIdentity;
  readonly tokens: readonly string[];
  readonly pieces: readonly TokenPieces[];
  /** What every request brings, but for its verification and time. */
  readonly request: Omit<Admission, "verification" | "nowMs">;
  readonly nowMs: number;
  /** Another capability; of another execution or another time where it is said. */
  readonly issue: (change?: { readonly identity?: ExecutionIdentity; readonly clock?: Clock }) => string;
}

export function newScene(): CapabilityScene {
  const [root, key] = [newSigningKey(), newSigningKey()];
  const presenter = createHash("sha256").update("bench presenter").digest("base64url");
  const identity = newIdentity("7");
  const caller = { tenantId: newTenantId(systemRandom), principal: "bench" };
  const access = { purpose: "control", scopes: ["files:read", "files:write"] } as const;
  const issue: CapabilityScene["issue"] = (change = {}) => {
    const issuer = new CapabilityIssuer({
      issuer: "space",
      key,
      clock: change.clock ?? systemClock,
      random: systemRandom,
    });
    return issuer.issue({ identity: change.identity ?? identity, access, caller, presenter }).token;
  };
  const tokens = Array.from({ length: tokenCount }, () => issue());
  const needed = { purpose: "control", scope: "files:read" } as const;
  return {
    key,
    ring: ringOf(root, 1, [key]),
    ringAfterRevocation: ringOf(root, 2, []),
    identity,
    tokens,
    pieces: tokens.map(takeApart),
    request: { target: identity.sandboxId, record: recordOf(identity), presenter, needed },
    nowMs: systemClock.wallMs(),
    issue,
  };
}

function newIdentity(generation: string): ExecutionIdentity {
  return freezeIdentity({
    sandboxId: newSandboxId(systemRandom),
    generation: parseGeneration(generation),
    placement: { workerId: newWorkerId(systemRandom), substrate: "namespace" },
    activation: { id: newActivationId(systemRandom), attempt: 1 },
  });
}

function ringOf(root: SigningKey, version: number, keys: readonly SigningKey[]): KeyRing {
  const issuedAtSeconds = Math.floor(systemClock.wallMs() / 1000);
  const bundled = keys.map(({ kid, publicKey }) => ({ kid, publicKey: publicKeyText(publicKey) }));
  return KeyRing.fromBundle(signKeyBundle(root, { version, issuedAtSeconds, keys: bundled }), root.publicKey);
}

function recordOf(identity: ExecutionIdentity): RuntimeRecord {
  return {
    identity,
    state: "installed",
    certificate: "",
    certificateDigest: certificateDigest(""),
    epoch: 1n,
    hostBootId: "bench",
    evidence: "{}",
  };
}

function takeApart(token: string): TokenPieces {
  const [header = "", payload = "", signature = ""] = token.split(".");
  return {
    signed: Buffer.from(`${header}.${payload}`),
    payload: Buffer.from(payload, "base64url"),
    signature: Buffer.from(signature, "base64url"),
  };
}
