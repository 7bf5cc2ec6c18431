// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ExecutionRecord, freezeIdentity, type SideEffect } from "@space/model";

/** the orders that end an execution. One that was never published may be at its worker as any attempt so far. */
export function retirementsOf({
  identity,
  state,
}: Pick<ExecutionRecord, "identity" | "state">): readonly SideEffect[] {
  const { id, attempt: newest } = identity.activation;
  const oldest = state === "starting" ? 1 : newest;
  return Array.from({ length: newest - oldest + 1 }, (_none, at) => ({
    kind: "retire",
    identity: freezeIdentity({ ...identity, activation: { id, attempt: oldest + at } }),
    keepFrozen: null,
  }));
}
