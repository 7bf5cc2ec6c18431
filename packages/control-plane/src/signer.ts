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
  signHandOverGrant,
  signLease,
  signOriginGrant,
  signRetirement,
} from "@space/capability";
import {
  type AuditFields,
  type AuditSink,
  type CapabilityClaims,
  type CheckpointSigner,
  type Clock,
  type Digest,
  type ExecutionIdentity,
  identityToJson,
  type LeaseGrant,
  longestHandOverSeconds,
  type ParentOrigin,
  type PublishedCertificate,
  type Random,
  type RetirementReason,
  type SandboxOrigin,
  type SandboxRecord,
  type SnapshotManifest,
  SpaceError,
  type WorkerId,
} from "@space/model";
import type { SigningKeys } from "./signing-keys.ts";

export interface SignerOptions {
  /** Names the installation in what it signs. */
  readonly issuer: string;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: AuditSink;
}

/** Signs what receivers verify, always with the one key that signs now. Whatever it signs is one event of the audit log. */
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
      /** Of a first execution that begins with another sandbox's snapshot. */
      readonly origin: SandboxOrigin | null;
    },
  ): PublishedCertificate {
    const token = signCertificate(this.#options.keys.current, {
      identity,
      publicKey: links.publicKey,
      previous: links.previous,
      restoredFrom: links.restoredFrom,
      origin: links.origin === null ? { kind: "self" } : parentOf(links.origin),
      issuedAtSeconds: this.#nowSeconds(),
    });
    const { previous, publicKey, restoredFrom } = links;
    const digest = certificateDigest(token);
    this.#options.audit.record("certificate/issued", {
      identity: identityToJson(identity),
      certificate: digest,
      previous,
      restoredFrom,
      reason: links.origin?.kind ?? (restoredFrom === null ? "create" : "resume"),
    });
    return { token, digest, previous, publicKey };
  }

  /** that a new sandbox begins with the snapshot that its row names. Throws `chain/refused` for one that names none. */
  originGrant({ sandboxId, tenantId, origin }: SandboxRecord): string {
    if (origin === null) throw new SpaceError("chain/refused", { link: "origin", problem: "none" });
    const { keys, audit } = this.#options;
    const grant = { sandboxId, tenantId, origin: parentOf(origin), issuedAtSeconds: this.#nowSeconds() };
    const token = signOriginGrant(keys.current, grant);
    audit.record("origin/issued", { sandboxId, parent: origin.parentManifest, reason: origin.kind });
    return token;
  }

  /** where the sandbox's chain ends now. Throws `chain/refused` for one that has never run. */
  chainHead(
    { sandboxId, certificateHead: certificate, snapshot }: SandboxRecord,
    reason: "resume" | "export",
  ): string {
    if (certificate === null)
      throw new SpaceError("chain/refused", { link: "head", problem: "no certificate" });
    const manifest = snapshot?.digest ?? null;
    const facts = { sandboxId, certificate, manifest };
    const token = signChainHead(this.#options.keys.current, {
      ...facts,
      issuedAtSeconds: this.#nowSeconds(),
    });
    this.#options.audit.record("chain-head/issued", { ...facts, reason });
    return token;
  }

  /** Of the audit log's chain, and so recorded as its checkpoint; the newest bundle shows whose key it is. */
  readonly auditCheckpoint: CheckpointSigner = (checkpoint) => ({
    token: signAuditCheckpoint(this.#options.keys.current, checkpoint),
    witness: { kind: "bundle", proof: this.#options.keys.bundle.token },
  });

  /** */
  retirement(identity: ExecutionIdentity, reason: RetirementReason): string {
    const { keys, audit } = this.#options;
    const token = signRetirement(keys.current, { identity, issuedAtSeconds: this.#nowSeconds() });
    audit.record("retirement/issued", { identity: identityToJson(identity), reason });
    return token;
  }

  /** that this worker may read this committed snapshot at the worker that made it, from now on for a moment. */
  handOver(identity: ExecutionIdentity, manifest: Digest, target: WorkerId): string {
    const { keys, audit } = this.#options;
    const issuedAtSeconds = this.#nowSeconds();
    const expiresAtSeconds = issuedAtSeconds + longestHandOverSeconds;
    const grant = { identity, manifest, target, issuedAtSeconds, expiresAtSeconds };
    const token = signHandOverGrant(keys.current, grant);
    audit.record("hand-over/issued", {
      identity: identityToJson(identity),
      manifest,
      target,
      reason: "move",
    });
    return token;
  }

  /** of a lease that is durable. */
  lease(grant: Omit<LeaseGrant, "issuedAtSeconds">, reason: AuditFields["lease/granted"]["reason"]): string {
    const { keys, audit } = this.#options;
    const { workerId, position, termSeconds } = grant;
    const token = signLease(keys.current, { ...grant, issuedAtSeconds: this.#nowSeconds() });
    audit.record("lease/granted", { workerId, position, termSeconds, reason });
    return token;
  }

  /** Of a manifest whose inner signature has been verified. */
  countersign(
    signed: string,
    { manifest, digest }: { readonly manifest: SnapshotManifest; readonly digest: Digest },
    reason: AuditFields["manifest/countersigned"]["reason"],
  ): string {
    const { keys, audit } = this.#options;
    const token = countersignManifest(keys.current, signed);
    const { sandboxId, generation } = manifest.identity;
    audit.record("manifest/countersigned", {
      sandboxId,
      generation: generation.toString(),
      manifest: digest,
      reason,
    });
    return token;
  }

  /** of an access that has been authorised. */
  capability(request: CapabilityRequest): { readonly token: string; readonly claims: CapabilityClaims } {
    const { issuer, keys, clock, random, audit } = this.#options;
    const { current } = keys;
    if (this.#issuer === undefined || this.#issuerKid !== current.kid) {
      this.#issuer = new CapabilityIssuer({ issuer, key: current, clock, random });
      this.#issuerKid = current.kid;
    }
    const issued = this.#issuer.issue(request);
    const { id, identity, access, caller } = issued.claims;
    audit.record("capability/issued", {
      capabilityId: id,
      sandboxId: identity.sandboxId,
      generation: identity.generation.toString(),
      tenantId: caller.tenantId,
      principal: caller.principal,
      presenter: request.presenter,
      reason: access.purpose === "control" ? access.scopes.join(" ") : `${access.protocol} ${access.port}`,
    });
    return issued;
  }

  #nowSeconds(): number {
    return Math.floor(this.#options.clock.wallMs() / 1000);
  }
}

function parentOf({ kind, parentManifest }: SandboxOrigin): ParentOrigin {
  return { kind, parentManifest };
}
