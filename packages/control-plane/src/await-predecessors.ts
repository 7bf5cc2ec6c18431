// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { leaseMarginMs, type SandboxRecord, SpaceError, type WorkerId } from "@space/model";
import type { ControlParts } from "./parts.ts";
import { within } from "./transitions.ts";

/** A sandbox owes its workers a handful of orders at worst. */
const ordersLimit = 100;

/**
 * R-16, statement 2: before a successor of this sandbox is started, every earlier execution elsewhere has ended: its
 * worker has acknowledged its retirement, or has had no lease for certain since. Waits a moment for an answer that may be
 * on its way; throws `worker/unfenced` with the time after which to try again, before anything is changed.
 */
export async function awaitPredecessors(
  { sandboxes, feeds, leases, clock, limits }: ControlParts,
  { sandboxId }: SandboxRecord,
  successorOn: WorkerId,
): Promise<void> {
  const orders = await sandboxes.pending({ sandboxId, limit: ordersLimit });
  if (orders.length > 0) await leases.refresh(); // after the orders were read: no lease is granted in spite of them
  for (const order of orders) {
    if (order.effect.kind !== "retire") continue;
    const { workerId } = order.effect.identity.placement;
    if (workerId === successorOn || leases.isOver(workerId)) continue; // on its own worker the start itself waits for it
    if ((await within(clock, limits.confirmMs, feeds.deliver([order]))) === true) continue;
    const retryAfterMs = Math.min(Math.max(leaseMarginMs, -leases.overForMs(workerId)), limits.leaseMs);
    throw new SpaceError("worker/unfenced", { workerId, retryAfterMs });
  }
}
