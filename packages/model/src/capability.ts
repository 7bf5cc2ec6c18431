// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Access } from "./access.ts";
import type { ExecutionIdentity } from "./identity.ts";
import type { CapabilityId, TenantId } from "./ids.ts";

/** On whose behalf a request is made. */
export interface Caller {
  readonly tenantId: TenantId;
  /** Stable name of the credential used (a key's or token's public id), never the credential. */
  readonly principal: string;
}

/** the claims of a capability. Times are whole seconds since 1970. */
export interface CapabilityClaims {
  readonly issuer: string;
  readonly id: CapabilityId;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly identity: ExecutionIdentity;
  readonly access: Access;
  readonly caller: Caller;
  /** SHA-256 of the presenter's TLS certificate (DER), base64url: `cnf["x5t#S256"]` of RFC 8705. */
  readonly presenter: string;
}

/** */
export const capabilityLifetimeSeconds = 120;
/** tolerance for clock skew at expiry. */
export const expiryToleranceSeconds = 15;
/** how far in the future `iat` may lie. */
export const issueSkewSeconds = 15;

/** the size limit that is checked before anything else is. */
export const capabilityLimitBytes = 4096;
