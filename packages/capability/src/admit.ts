// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type CapabilityClaims,
  capabilityLifetimeSeconds,
  compareIdentity,
  type DenyReason,
  expiryToleranceSeconds,
  type IdentityVerdict,
  issueSkewSeconds,
  type NeededAccess,
  type RefreshReason,
  type RuntimeRecord,
  type SandboxId,
} from "@space/model";
import type { CapabilityVerification } from "./verifier.ts";

/** One request before the comparator. */
export interface Admission {
  readonly verification: CapabilityVerification;
  /** The sandbox that the request names, apart from the capability. */
  readonly target: SandboxId;
  /** The receiver's own record, found by the target or by the endpoint. */
  readonly record: RuntimeRecord | undefined;
  /** SHA-256 of the TLS certificate of the peer that presents the capability, base64url. */
  readonly presenter: string;
  readonly needed: NeededAccess;
  /** The receiver's wall clock. */
  readonly nowMs: number;
}

type Deny = Extract<IdentityVerdict, { kind: "deny" }>;
type Check = (claims: CapabilityClaims, admission: Admission) => Deny | undefined;

/**
 * compares one request with the receiver's own record, before a byte of it is forwarded. The checks run in the
 * order of the rule and the first that fails decides. Pure: uses nothing but its argument, never throws.
 */
export function admit(admission: Admission): IdentityVerdict {
  const { verification } = admission;
  if (verification.kind === "refused") return deny(verification.reason); // form, key, signature
  const { claims } = verification.capability;
  return (
    checkTime(claims, admission) ??
    checkPresenter(claims, admission) ??
    checkAccess(claims, admission) ??
    checkTarget(claims, admission) ?? // the target is named apart from the capability
    compareWithRecord(claims, admission.record) // the table
  );
}

/** at most 120 s of life, issued at most 15 s in the future, valid while now < exp + 15 s. */
const checkTime: Check = ({ issuedAtSeconds, expiresAtSeconds }, { nowMs }) => {
  const lifetimeSeconds = expiresAtSeconds - issuedAtSeconds;
  if (lifetimeSeconds <= 0 || lifetimeSeconds > capabilityLifetimeSeconds) return deny("lifetime");
  if (issuedAtSeconds * 1000 > nowMs + issueSkewSeconds * 1000) return deny("not-yet");
  const isValid = nowMs < (expiresAtSeconds + expiryToleranceSeconds) * 1000; // false for a clock that is not a number
  return isValid ? undefined : deny("expired");
};

/** bound to the TLS certificate of the component that presents it. */
const checkPresenter: Check = (claims, { presenter }) =>
  claims.presenter === presenter ? undefined : deny("presenter");

/** the one scope, or the port and the protocol, that the request needs. */
const checkAccess: Check = ({ access }, { needed }) => {
  if (access.purpose === "control") {
    if (needed.purpose !== "control") return deny("purpose");
    const { scope } = needed; // undefined: the operation is in no table
    return scope !== undefined && access.scopes.includes(scope) ? undefined : deny("scope");
  }
  if (needed.purpose !== "service-port") return deny("purpose");
  if (access.port !== needed.port) return deny("port");
  return access.protocol === needed.protocol ? undefined : deny("protocol");
};

/** a capability for another sandbox than the target is denied, whatever the record says. */
const checkTarget: Check = ({ identity }, { target }) =>
  identity.sandboxId === target ? undefined : deny("other-sandbox");

/** the table of verdicts. R-15: the record is what this receiver has heard; a retirement that it has not does not count. */
function compareWithRecord(
  { identity }: CapabilityClaims,
  record: RuntimeRecord | undefined,
): IdentityVerdict {
  const refresh = (reason: RefreshReason): IdentityVerdict => ({
    kind: "refresh-route",
    reason,
    rejected: identity,
  });
  if (record === undefined) return refresh("not-installed");
  const compared = compareIdentity(identity, record.identity);
  if (compared === "other-sandbox") return deny(compared); // a record that was not found by the target
  if (record.state === "retired") return refresh("retired");
  return compared === "identical" ? { kind: "match", identity: record.identity } : refresh(compared);
}

function deny(reason: DenyReason): Deny {
  return { kind: "deny", reason };
}
