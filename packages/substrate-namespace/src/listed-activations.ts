// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ActivationId, parseActivationId } from "@space/model";
import type { LaunchListing } from "@space/spaced-guest";

/** The activation that a name of the launcher, a group or a socket stands for. */
export function asActivation(name: string): ActivationId | undefined {
  try {
    return parseActivationId(name);
  } catch {
    return undefined; // a bridge's name, or somebody else's folder
  }
}

export interface ListedActivation {
  readonly activationId: ActivationId;
  readonly hostPid: number;
  readonly startTime: bigint;
}

/** The guests that run, out of all that a launcher has started. */
export function activations(listing: readonly LaunchListing[]): readonly ListedActivation[] {
  return listing.flatMap(({ name, hostPid, startTime, running }) => {
    const activationId = asActivation(name);
    return activationId !== undefined && running ? [{ activationId, hostPid, startTime }] : [];
  });
}
