// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Access,
  type Caller,
  type CapabilityClaims,
  type Clock,
  capabilityLifetimeSeconds,
  type ExecutionIdentity,
  newCapabilityId,
  type Random,
} from "@space/model";
import { capabilityKind, claimsToJson } from "./claims.ts";
import { sealToken } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

export interface IssuerOptions {
  /** Names the installation that signs: 1 to 128 printable ASCII characters. */
  readonly issuer: string;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly random: Random;
}

export interface CapabilityRequest {
  readonly identity: ExecutionIdentity;
  readonly access: Access;
  readonly caller: Caller;
  /** SHA-256 of the TLS certificate (DER) of the component that will present it, base64url. */
  readonly presenter: string;
}

/** Issues capabilities. The control plane's alone: it trusts its caller to have authorised the access. */
export class CapabilityIssuer {
  readonly #options: IssuerOptions;

  constructor(options: IssuerOptions) {
    this.#options = options;
  }

  /** signs a fresh capability of 120 s. Throws `input/invalid` for a request that no verifier would accept. */
  issue(request: CapabilityRequest): { readonly token: string; readonly claims: CapabilityClaims } {
    const { issuer, key, clock, random } = this.#options;
    const issuedAtSeconds = Math.floor(clock.wallMs() / 1000);
    const { token, value } = sealToken(
      capabilityKind,
      key,
      claimsToJson({
        ...request,
        issuer,
        id: newCapabilityId(random),
        issuedAtSeconds,
        expiresAtSeconds: issuedAtSeconds + capabilityLifetimeSeconds,
      }),
    );
    return { token, claims: value };
  }
}
