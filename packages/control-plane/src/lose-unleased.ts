// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { fencedLimitMs, type SandboxRecord, type WorkerId } from "@space/model";
import { loseSandbox } from "./lose-sandbox.ts";
import type { ControlParts } from "./parts.ts";

/**
 * what runs on a worker whose lease has run out is lost, and only then: it has fenced itself, so nothing of it acts
 * any more. One that is connected may only be late with its request, and is given as long as streams are held. While this
 * host sleeps nobody can renew, so that time does not count (incident 15).
 */
export async function loseUnleased(parts: ControlParts): Promise<void> {
  await parts.leases.refresh();
  for (const workerId of (await parts.sandboxes.load()).keys()) {
    if (!isGivenUp(parts, workerId)) continue;
    for (const record of await parts.sandboxes.onWorker(workerId)) {
      if (!isServedBy(record, workerId) || parts.transitions.current(record.sandboxId) !== undefined)
        continue;
      await loseSandbox(parts, record, "its worker's lease ran out");
    }
  }
}

function isGivenUp({ leases, workers }: ControlParts, workerId: WorkerId): boolean {
  const graceMs = workers.find(workerId) === undefined ? 0 : fencedLimitMs;
  return leases.isOver(workerId) && leases.overWhileAwakeForMs(workerId) >= graceMs;
}

function isServedBy({ state, execution }: SandboxRecord, workerId: WorkerId): boolean {
  const isOpen = state === "running" || state === "pausing";
  return isOpen && execution.state !== "ended" && execution.identity.placement.workerId === workerId;
}
