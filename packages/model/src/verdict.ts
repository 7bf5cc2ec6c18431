// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "./identity.ts";

/** Why a capability was denied. For the audit log only: an outsider sees none of it. */
export type DenyReason =
  | "form"
  | "key"
  | "signature"
  | "expired"
  | "not-yet"
  | "lifetime"
  | "presenter"
  | "purpose"
  | "scope"
  | "port"
  | "protocol"
  | "other-sandbox";

/** Why the gateway must look for the route again. */
export type RefreshReason =
  | "older-generation"
  | "newer-generation"
  | "other-placement"
  | "other-activation"
  | "retired"
  | "not-installed"
  /** Installed, but a pause has begun: nothing is admitted until it is decided. */
  | "pausing"
  /** installed, but this worker has no lease now. */
  | "no-lease"
  /** Installed, but its runtime process has ended by itself. */
  | "execution-gone";

/** the answer of the comparator; a value, never an exception. */
export type IdentityVerdict =
  | { readonly kind: "match"; readonly identity: ExecutionIdentity }
  | { readonly kind: "refresh-route"; readonly reason: RefreshReason; readonly rejected: ExecutionIdentity }
  | { readonly kind: "deny"; readonly reason: DenyReason };
