// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { admit, type TrustedKeys } from "@space/capability";
import type { Clock, IdentityVerdict } from "@space/model";
import type { AdmissionCheck, AdmissionRequest } from "../ports.ts";

/** the real check: the capability's bytes, then its time, presenter, access and identity against the present record. */
export class CapabilityAdmission implements AdmissionCheck {
  readonly #keys: TrustedKeys;
  readonly #clock: Clock;

  constructor(keys: TrustedKeys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  check({ capability, target, record, presenter, needed }: AdmissionRequest): IdentityVerdict {
    const verification = this.#keys.verify(capability);
    return admit({ verification, target, record, presenter, needed, nowMs: this.#clock.wallMs() });
  }
}
