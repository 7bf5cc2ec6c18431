// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "./identity.ts";
import type { Digest } from "./ids.ts";

/** Where an execution's state came from. A fork or template names the parent's manifest. */
export type ExecutionOrigin =
  | { readonly kind: "self" }
  | { readonly kind: "fork" | "template"; readonly parentManifest: Digest };

/** what the control plane signs about one execution: a link of the identity chain. */
export interface ExecutionCertificate {
  readonly identity: ExecutionIdentity;
  /** The execution's Ed25519 public key, 32 raw bytes, base64url. */
  readonly publicKey: string;
  /** Digest of this sandbox's previous certificate; null for generation 1. */
  readonly previous: Digest | null;
  /** Digest of the manifest that it was restored from; null for a cold start. */
  readonly restoredFrom: Digest | null;
  readonly origin: ExecutionOrigin;
  readonly issuedAtSeconds: number;
}

/** the signed order to stop serving exactly this identity. */
export interface Retirement {
  readonly identity: ExecutionIdentity;
  readonly issuedAtSeconds: number;
}
