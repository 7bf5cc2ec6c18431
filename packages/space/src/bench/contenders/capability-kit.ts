// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import { join } from "node:path";
import {
  CapabilityIssuer,
  newSigningKey,
  publicKeyText,
  signCertificate,
  signKeyBundle,
} from "@space/capability";
import {
  type ExecutionIdentity,
  firstGeneration,
  identityToJson,
  newActivationId,
  newSandboxId,
  newTenantId,
  newWorkerId,
} from "@space/model";
import { systemClock } from "../../host/system-clock.ts";
import { systemRandom } from "../../host/system-random.ts";
import type { CheckFacts } from "../capability-check.ts";

/** Reused tokens are signed anew before a sample that begins with less life than this left in them. */
const freshForMs = 60_000;
/** Distinct capabilities that are used again and again. */
const reusedTokens = 1_000;

/** Keys, a certificate and capabilities for one execution that exists nowhere: what a hop with the real check needs. */
export class CapabilityKit {
  readonly #issuer: CapabilityIssuer;
  readonly #identity: ExecutionIdentity;
  readonly #presenter = createHash("sha256").update("bench presenter").digest("base64url");
  /** What a verifier must know. */
  readonly facts: CheckFacts;
  #reused: { readonly tokens: readonly string[]; readonly issuedAtMs: number } | undefined;

  constructor() {
    const root = newSigningKey();
    const signing = newSigningKey();
    const executionKey = newSigningKey();
    this.#identity = {
      sandboxId: newSandboxId(systemRandom),
      generation: firstGeneration,
      placement: { workerId: newWorkerId(systemRandom), substrate: "namespace" },
      activation: { id: newActivationId(systemRandom), attempt: 1 },
    };
    this.#issuer = new CapabilityIssuer({
      issuer: "bench",
      key: signing,
      clock: systemClock,
      random: systemRandom,
    });
    const issuedAtSeconds = Math.floor(systemClock.wallMs() / 1000);
    const keys = [{ kid: signing.kid, publicKey: publicKeyText(signing.publicKey) }];
    this.facts = {
      bundle: signKeyBundle(root, { version: 1, keys, issuedAtSeconds }),
      rootKey: publicKeyText(root.publicKey),
      certificate: signCertificate(signing, {
        identity: this.#identity,
        publicKey: publicKeyText(executionKey.publicKey),
        previous: null,
        restoredFrom: null,
        origin: { kind: "self" },
        issuedAtSeconds,
      }),
      identity: identityToJson(this.#identity),
      presenter: this.#presenter,
    };
  }

  /** For one hop, which keeps its own store in the folder. */
  checkConfig(folder: string, name: string): { readonly facts: CheckFacts; readonly store: string } {
    return { facts: this.facts, store: join(folder, `${name}.db`) };
  }

  /** Signs as many new capabilities. */
  issue(count: number): readonly string[] {
    const request = {
      identity: this.#identity,
      access: { purpose: "control", scopes: ["files:read", "files:write"] } as const,
      caller: { tenantId: newTenantId(systemRandom), principal: "bench" },
      presenter: this.#presenter,
    };
    return Array.from({ length: count }, () => this.#issuer.issue(request).token);
  }

  /** The same ones again, as long as they live long enough. */
  reused(): readonly string[] {
    const nowMs = systemClock.monotonicMs();
    if (this.#reused === undefined || nowMs - this.#reused.issuedAtMs > freshForMs) {
      this.#reused = { tokens: this.issue(reusedTokens), issuedAtMs: nowMs };
    }
    return this.#reused.tokens;
  }
}
