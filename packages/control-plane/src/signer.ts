// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  CapabilityIssuer,
  type CapabilityRequest,
  certificateDigest,
  countersignManifest,
  signAuditCheckpoint,
  signCertificate,
  signChainHead,
  signLease,
  signRetirement,
} from "@space/capability";
import {
  type CapabilityClaims,
  type CheckpointSigner,
  type Clock,
  type Digest,
  type ExecutionIdentity,
  type LeaseGrant,
  type PublishedCertificate,
  type Random,
  type SandboxRecord,
  SpaceError,
} from "@space/model";
import type { SigningKeys } from "./signing-keys.ts";

export interface SignerOptions {
  /** Names the installation in what it signs. */
  readonly issuer: string;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly random: Random;
}

/** Signs what receivers verify, always with the one key that signs now. */
export class Signer {
  readonly #options: SignerOptions;
  #issuer: CapabilityIssuer | undefined;
  #issuerKid = "";

  constructor(options: SignerOptions) {
    this.#options = options;
  }

  /** a link of the chain. `previous` is the sandbox's newest certificate. */
  certificate(
    identity: ExecutionIdentity,
    links: {
      readonly publicKey: string;
      readonly previous: Digest | null;
      readonly restoredFrom: Digest | null;
    },
  ): PublishedCertificate {
    const token = signCertificate(this.#options.keys.current, {
      identity,
      ...links,
      origin: { kind: "self" },
      issuedAtSeconds: this.#nowSeconds(),
    });
    const { previous, publicKey } = links;
    return { token, digest: certificateDigest(token), previous, publicKey };
  }

  /** where the sandbox's chain ends now. Throws `chain/refused` for one that has never run. */
  chainHead({ sandboxId, certificateHead, snapshot }: SandboxRecord): string {
    if (certificateHead === null)
      throw new SpaceError("chain/refused", { link: "head", problem: "no certificate" });
    return signChainHead(this.#options.keys.current, {
      sandboxId,
      certificate: certificateHead,
      manifest: snapshot?.digest ?? null,
      issuedAtSeconds: this.#nowSeconds(),
    });
  }

  /** Of the audit log's chain; the newest bundle shows whose key it is. */
  readonly auditCheckpoint: CheckpointSigner = (checkpoint) => ({
    token: signAuditCheckpoint(this.#options.keys.current, checkpoint),
    witness: { kind: "bundle", proof: this.#options.keys.bundle.token },
  });

  /** */
  retirement(identity: ExecutionIdentity): string {
    return signRetirement(this.#options.keys.current, { identity, issuedAtSeconds: this.#nowSeconds() });
  }

  /** of a lease that is durable. */
  lease(grant: Omit<LeaseGrant, "issuedAtSeconds">): string {
    return signLease(this.#options.keys.current, { ...grant, issuedAtSeconds: this.#nowSeconds() });
  }

  /** Of a manifest whose inner signature has been verified. */
  countersign(signed: string): string {
    return countersignManifest(this.#options.keys.current, signed);
  }

  /** of an access that has been authorised. */
  capability(request: CapabilityRequest): { readonly token: string; readonly claims: CapabilityClaims } {
    const { issuer, keys, clock, random } = this.#options;
    const { current } = keys;
    if (this.#issuer === undefined || this.#issuerKid !== current.kid) {
      this.#issuer = new CapabilityIssuer({ issuer, key: current, clock, random });
      this.#issuerKid = current.kid;
    }
    return this.#issuer.issue(request);
  }

  #nowSeconds(): number {
    return Math.floor(this.#options.clock.wallMs() / 1000);
  }
}
