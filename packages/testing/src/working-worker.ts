// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { ExecutionIdentity } from "@space/model";
import type { FakeProcess } from "./fake-machine.ts";
import { WorkerRig } from "./worker-rig.ts";

export interface WorkingWorker {
  readonly rig: WorkerRig;
  readonly identity: ExecutionIdentity;
  readonly process: FakeProcess;
}

/** A worker with one execution, which has something in its memory and in its files. */
export async function working(rig = new WorkerRig()): Promise<WorkingWorker> {
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const process = rig.machine.processes.get(identity.activation.id) ?? assert.fail("it runs");
  process.memory = "counting";
  process.files = "a file system of several chunks";
  return { rig, identity, process };
}

/** The execution after this one of the same sandbox. */
export function resume(rig: WorkerRig, identity: ExecutionIdentity): ExecutionIdentity {
  return rig.identity({ sandboxId: identity.sandboxId, generation: Number(identity.generation) + 1 });
}
