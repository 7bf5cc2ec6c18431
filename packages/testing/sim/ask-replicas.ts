// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ControlPlane } from "@space/control-plane";
import { isSpaceError } from "@space/model";
import type { ControlNode } from "./control-node.ts";
import type { LinkEnd } from "./network.ts";

/** Chooses a replica; not the one that has just been asked. */
export type ChooseReplica = (asked?: ControlNode) => ControlNode;

/**
 * A call of the control plane, and of another replica when the first does not hear the sandbox's worker at the moment, or
 * hears none that has room.
 */
export async function askReplicas<T>(
  choose: ChooseReplica,
  { from, limitMs }: { readonly from: LinkEnd; readonly limitMs: number },
  ask: (control: ControlPlane) => Promise<T>,
): Promise<T> {
  const first = choose();
  try {
    return await first.call(from, limitMs, ask);
  } catch (error) {
    const isElsewhere = isSpaceError(error, "worker/unreachable") || isSpaceError(error, "worker/none-free");
    if (!isElsewhere) throw error;
    return choose(first).call(from, limitMs, ask);
  }
}
