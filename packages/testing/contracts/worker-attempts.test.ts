// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ErrorCode, freezeIdentity, isSpaceError } from "@space/model";
import { WorkerRig } from "../src/worker-rig.ts";

const code = (wanted: ErrorCode) => (error: unknown) => isSpaceError(error, wanted);

describe("attempts and pods at a worker", () => {
  test("R-2: a pod that came in another's place, with its address and store, takes nothing that was placed in that", async () => {
    const rig = new WorkerRig();
    await rig.boot({ worker: { podUid: "pod-1" } });
    const placed = (podUid: string, parts: Parameters<typeof rig.identity>[0] = {}) => {
      const identity = rig.identity(parts);
      return freezeIdentity({ ...identity, placement: { ...identity.placement, podUid } });
    };
    const first = placed("pod-1");
    const certificate = await rig.run(first);
    await rig.reboot({ worker: { podUid: "pod-2" } });
    await assert.rejects(rig.worker.control.activate(rig.request(placed("pod-1"))), code("input/invalid"));
    await assert.rejects(rig.worker.control.install(certificate), code("certificate/refused"));
    await rig.run(placed("pod-2", { sandboxId: first.sandboxId, generation: 2 }));
  });

  test("R-1, R-3: a later attempt drives the process that there is, and starts none", async () => {
    const rig = new WorkerRig();
    await rig.boot();
    const first = rig.identity();
    const next = freezeIdentity({ ...first, activation: { id: first.activation.id, attempt: 2 } });
    await assert.rejects(rig.worker.control.activate(rig.request(next)), code("record/absent"));
    assert.equal(rig.machine.processes.size, 0);
    const certificate = await rig.run(first);
    await rig.run(next);
    assert.equal(rig.machine.processes.size, 1);
    await assert.rejects(rig.worker.control.install(certificate), code("record/stale"));
    await rig.worker.control.retire(rig.authority.retirement(first), null);
    assert.equal(rig.machine.processes.size, 1, "the late word of who drove the first attempt");
    await rig.worker.control.retire(rig.authority.retirement(next), null);
    assert.equal(rig.machine.processes.size, 0);
  });
});
