// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { claimedKeyId, routeDigest } from "@space/capability";
import { type Access, type Digest, type RouteEntry, unreachable, type WantedAccess } from "@space/model";

/** the caller's authorisation never outlives its check by more than this, whatever the control plane says. */
const authorisationLimitMs = 60_000;
/** age at which a capability is renewed. */
const capabilityRenewalMs = 60_000;
/** How long before its end an entry in use is looked up anew, so that no request has to wait. */
const refreshAheadMs = 15_000;

/**
 * one caller's route, capability and authorisation as one immutable value, with its ends on the gateway's own
 * clock, which never steps and runs on while the host sleeps (incident 15). Nothing moves them; a new check makes a new
 * value.
 */
export interface CachedEntry {
  readonly entry: RouteEntry;
  /** what a worker names when it rejects this entry's route. */
  readonly digest: Digest;
  /** the key that signed the capability, as the capability says. */
  readonly kid: string;
  /** the thumbprint of the certificate that it may be presented with. */
  readonly presenter: string;
  readonly authorisedUntilMs: number;
  /** From here on the entry may not be presented: the authorisation or the capability has ended. */
  readonly usableUntilMs: number;
  /** From here on a use starts a new look-up in the background. */
  readonly refreshAtMs: number;
}

/** When a look-up was sent. Everything it granted is counted from there, never from the answer. */
export interface LookupStart {
  /** whom the look-up asked for. */
  readonly presenter: string;
  readonly bootMs: number;
}

/** `notAfterMs`: the authorisation's end that a repair must not exceed. */
export function cacheEntry(
  entry: RouteEntry,
  began: LookupStart,
  notAfterMs: number = Number.POSITIVE_INFINITY,
): CachedEntry {
  const grantedMs = Math.min(authorisationLimitMs, entry.authorisedForMs);
  const authorisedUntilMs = Math.min(began.bootMs + grantedMs, notAfterMs);
  const capabilityLifeMs = entry.capabilityExpiresAtMs - entry.capabilityIssuedAtMs;
  const usableUntilMs = Math.min(authorisedUntilMs, began.bootMs + capabilityLifeMs);
  const lifeMs = Math.max(0, usableUntilMs - began.bootMs);
  const aheadMs = Math.min(refreshAheadMs, lifeMs / 4);
  return Object.freeze({
    entry: Object.freeze({ ...entry }),
    digest: routeDigest(entry.route.identity),
    kid: claimedKeyId(entry.capability) ?? "",
    presenter: began.presenter,
    authorisedUntilMs,
    usableUntilMs,
    refreshAtMs: Math.min(usableUntilMs - aheadMs, began.bootMs + capabilityRenewalMs),
  });
}

/** Whether the access granted covers the access wanted. Anything else is the control plane's fault and never used. */
export function covers(granted: Access, wanted: WantedAccess): boolean {
  switch (wanted.purpose) {
    case "control":
      return granted.purpose === "control" && granted.scopes.includes(wanted.scope);
    case "service-port":
      return (
        granted.purpose === "service-port" &&
        granted.port === wanted.port &&
        granted.protocol === wanted.protocol
      );
    default:
      return unreachable(wanted);
  }
}
