// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { recordSetDigest } from "@space/capability";
import type { Digest, SandboxRecord, WorkerHandle, WorkerId, WorkerInventory } from "@space/model";
import type { ControlParts } from "./parts.ts";
import { reconcileWorker } from "./reconcile-worker.ts";

/**
 * Compares the digest of a worker's record set with the one expected; where they differ, asks for the list and repairs.
 * While something is on its way to the worker, or one of its sandboxes is in between, they may differ: then nothing is
 * compared. Throws `store/failed`, and `worker/unreachable` when the list does not come.
 */
export async function compareRecords(
  parts: ControlParts,
  worker: WorkerHandle,
  records: Digest,
): Promise<void> {
  const { workerId } = worker;
  const believed = await parts.sandboxes.onWorker(workerId);
  const isSettled = believed.every(({ claim }) => claim === null) && (await parts.feeds.isQuiet(workerId));
  if (!isSettled || recordSetDigest(expected(believed, workerId)) === records) return;
  const inventory = await worker.control.inventory();
  const found = await reconcileWorker(parts, { worker, inventory, believed });
  parts.audit.record("worker/reconciled", { workerId, ...found });
}

function expected(believed: readonly SandboxRecord[], workerId: WorkerId): WorkerInventory {
  const isHere = ({ execution: { identity } }: SandboxRecord): boolean =>
    identity.placement.workerId === workerId;
  return {
    installed: believed
      .filter((record) => record.state === "running" && isHere(record))
      .map(({ execution }) => execution.identity),
    frozen: believed.flatMap(({ sandboxId, state, snapshot }) =>
      state === "paused" && snapshot?.frozenOn === workerId ? [{ sandboxId, manifest: snapshot.digest }] : [],
    ),
  };
}
