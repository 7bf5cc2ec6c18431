// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  CapabilityIssuer,
  type ChainHead,
  certificateDigest,
  newSigningKey,
  publicKeyText,
  type SigningKey,
  signCertificate,
  signChainHead,
  signKeyBundle,
  signLease,
  signOriginGrant,
  signRetirement,
} from "@space/capability";
import {
  type Access,
  type Clock,
  controlScopes,
  type Digest,
  defaultLeaseSeconds,
  type ExecutionIdentity,
  firstGeneration,
  type LeaseRequest,
  type OriginGrant,
  parseTenantId,
  type Random,
  type WorkerId,
} from "@space/model";

export interface CertificateParts {
  readonly identity: ExecutionIdentity;
  readonly publicKey: string;
  readonly restoredFrom?: Digest | null;
  readonly previous?: Digest | null;
  readonly issuedAtSeconds?: number;
  readonly key?: SigningKey;
}

export interface CapabilityParts {
  readonly identity: ExecutionIdentity;
  readonly presenter: string;
  readonly access?: Access;
  readonly key?: SigningKey;
}

/** Everything, on the guest's agent. */
export const fullControl: Access = { purpose: "control", scopes: controlScopes };

/** The control plane's signer, for tests that play the control plane. */
export class TestAuthority {
  readonly root: SigningKey = newSigningKey();
  readonly key: SigningKey = newSigningKey();
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get rootPublicKey(): KeyObject {
    return this.root.publicKey;
  }

  bundle(version = 1, keys: readonly SigningKey[] = [this.key], root: SigningKey = this.root): string {
    return signKeyBundle(root, {
      version,
      keys: keys.map((key) => ({ kid: key.kid, publicKey: publicKeyText(key.publicKey) })),
      issuedAtSeconds: this.#nowSeconds(),
    });
  }

  certificate(parts: CertificateParts): string {
    const { identity, publicKey, restoredFrom = null, key = this.key } = parts;
    const isFirst = identity.generation === firstGeneration && identity.activation.attempt === 1;
    const isForked = identity.generation === firstGeneration && restoredFrom !== null;
    return signCertificate(key, {
      identity,
      publicKey,
      previous: parts.previous ?? (isFirst ? null : certificateDigest("previous")),
      restoredFrom,
      origin: isForked ? { kind: "fork", parentManifest: restoredFrom } : { kind: "self" },
      issuedAtSeconds: parts.issuedAtSeconds ?? this.#nowSeconds(),
    });
  }

  /** the head of a chain that ends with these. */
  head(ends: Omit<ChainHead, "issuedAtSeconds">, key: SigningKey = this.key): string {
    return signChainHead(key, { ...ends, issuedAtSeconds: this.#nowSeconds() });
  }

  /** that a new sandbox begins with this manifest. */
  originGrant(grant: Omit<OriginGrant, "issuedAtSeconds">, key: SigningKey = this.key): string {
    return signOriginGrant(key, { ...grant, issuedAtSeconds: this.#nowSeconds() });
  }

  retirement(identity: ExecutionIdentity, key: SigningKey = this.key): string {
    return signRetirement(key, { identity, issuedAtSeconds: this.#nowSeconds() });
  }

  /** what a control plane answers to this request. */
  lease(workerId: WorkerId, request: LeaseRequest, termSeconds: number = defaultLeaseSeconds): string {
    const { nonce } = request;
    return signLease(this.key, {
      workerId,
      nonce,
      termSeconds,
      position: 0,
      issuedAtSeconds: this.#nowSeconds(),
    });
  }

  capability({ identity, presenter, access = fullControl, key = this.key }: CapabilityParts): string {
    const issuer = new CapabilityIssuer({ issuer: "test", key, clock: this.#clock, random: this.#random });
    const caller = { tenantId: parseTenantId(`ten_${"t".repeat(16)}`), principal: "key-1" };
    return issuer.issue({ identity, access, caller, presenter }).token;
  }

  #nowSeconds(): number {
    return Math.floor(this.#clock.wallMs() / 1000);
  }
}
