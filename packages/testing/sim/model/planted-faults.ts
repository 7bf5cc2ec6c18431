// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { RuntimeRecord } from "@space/model";
import { identityOf, type Place } from "./model-identities.ts";
import { type ProtocolRules, productRules } from "./protocol-model.ts";

/** The rules with one of them broken: a search must find what it breaks. */
export const plantedFaults: Readonly<Record<string, ProtocolRules>> = {
  "the comparator ignores the generation": {
    ...productRules,
    admits: (_capability, record) => record !== undefined && record.state === "installed",
  },
  "a lower generation replaces a higher": { ...productRules, installs: () => true },
  "a retirement ends whatever is installed": {
    ...productRules,
    retires: (record: RuntimeRecord | undefined, place: Place) =>
      record !== undefined && record.identity.sandboxId === identityOf(place).sandboxId,
  },
  "a lease is not waited for": { ...productRules, mayFollow: () => true },
  "a worker without a lease serves": { ...productRules, fences: false },
  "replacement is unconditional": { ...productRules, replaces: () => true },
};
