// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { admit, CapabilityVerifier, certificateDigest, importPublicKey, KeyRing } from "@space/capability";
import { parseIdentity, type RuntimeRecord, type SandboxId } from "@space/model";
import * as v from "valibot";
import { systemClock } from "../host/system-clock.ts";

export const checkFactsSchema = v.strictObject({
  /** the keys that count, signed by the root. */
  bundle: v.string(),
  rootKey: v.string(),
  certificate: v.string(),
  /** The execution in its JSON form. */
  identity: v.unknown(),
  /** the thumbprint that capabilities are bound to. */
  presenter: v.string(),
});

export type CheckFacts = v.InferOutput<typeof checkFactsSchema>;

/** The record that a worker would have of the execution. */
export function recordOf({ identity, certificate }: CheckFacts): RuntimeRecord {
  return {
    identity: parseIdentity(identity),
    state: "installed",
    certificate,
    certificateDigest: certificateDigest(certificate),
    epoch: 1n,
    hostBootId: "bench",
    evidence: "{}",
  };
}

/** The worker's own check: bytes, then time, presenter, access and identity against the record as it is now. */
export class CapabilityCheck {
  readonly #verifier: CapabilityVerifier;
  readonly #target: SandboxId;
  readonly #presenter: string;
  readonly #read: (sandboxId: SandboxId) => RuntimeRecord | undefined;

  constructor(facts: CheckFacts, read: (sandboxId: SandboxId) => RuntimeRecord | undefined) {
    const keys = KeyRing.fromBundle(facts.bundle, importPublicKey(facts.rootKey));
    this.#verifier = new CapabilityVerifier({ keys });
    this.#target = parseIdentity(facts.identity).sandboxId;
    this.#presenter = facts.presenter;
    this.#read = read;
  }

  admits(capability: string): boolean {
    const verdict = admit({
      verification: this.#verifier.verify(capability),
      target: this.#target,
      record: this.#read(this.#target),
      presenter: this.#presenter,
      needed: { purpose: "control", scope: "files:read" },
      nowMs: systemClock.wallMs(),
    });
    return verdict.kind === "match";
  }
}
