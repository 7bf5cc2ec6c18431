// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "./identity.ts";
import type { Digest, SandboxId, TenantId } from "./ids.ts";

/** Where a sandbox begins that does not begin empty: with the snapshot of another sandbox, which this manifest is of. */
export interface ParentOrigin {
  readonly kind: "fork" | "template";
  readonly parentManifest: Digest;
}

/**
 * Where an execution's state came from. One of generation 1 begins empty (`self`), or is restored from exactly the manifest
 * that its origin names; a later one goes on from its own sandbox's (`self`).
 */
export type ExecutionOrigin = { readonly kind: "self" } | ParentOrigin;

/** the control plane's word that this new sandbox of this tenant begins with the snapshot of another one. */
export interface OriginGrant {
  readonly sandboxId: SandboxId;
  readonly tenantId: TenantId;
  readonly origin: ParentOrigin;
  readonly issuedAtSeconds: number;
}

/** what the control plane signs about one execution: a link of the identity chain. */
export interface ExecutionCertificate {
  readonly identity: ExecutionIdentity;
  /** The execution's Ed25519 public key, 32 raw bytes, base64url. */
  readonly publicKey: string;
  /** Digest of this sandbox's previous certificate; null for generation 1. */
  readonly previous: Digest | null;
  /** Digest of the manifest that it was restored from: the newest of its sandbox, or its origin's; null for a cold start. */
  readonly restoredFrom: Digest | null;
  readonly origin: ExecutionOrigin;
  readonly issuedAtSeconds: number;
}

/** the signed order to stop serving exactly this identity. */
export interface Retirement {
  readonly identity: ExecutionIdentity;
  readonly issuedAtSeconds: number;
}
