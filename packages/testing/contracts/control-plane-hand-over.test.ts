// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { newWorkerId } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { Fleet } from "../src/fleet-rig.ts";

const files = "a file system of several chunks";

describe("a move by the control plane", () => {
  /** A sandbox with files on worker a, moved to b. */
  async function moved(
    context: TestContext,
    directMoves: boolean,
    spoil: (fleet: Fleet) => void = () => undefined,
  ) {
    const fleet = await Fleet.open(context, {}, directMoves);
    const { rig, a, b } = fleet;
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    const [process] = a.machine.processes.values();
    assert.ok(process !== undefined);
    process.files = files;
    spoil(fleet);
    await rig.service.move(rig.caller, sandboxId, { workerId: b.workerId });
    assert.deepEqual(
      [...b.machine.processes.values()].map((one) => one.files),
      [files],
    );
    return fleet;
  }

  test("R-7: goes from worker to worker under a grant that names both and the committed manifest", async (context) => {
    const { rig, a, b } = await moved(context, true);
    const [issued, ...more] = rig.audit.of("hand-over/issued");
    assert.deepEqual(more, []);
    assert.deepEqual([issued?.identity.placement.workerId, issued?.target], [a.workerId, b.workerId]);
    const { chunksReceived, chunksNotReceived } = b.worker.stats();
    assert.ok(chunksReceived > 2);
    assert.equal(chunksNotReceived, 0);
    assert.equal(b.audit.of("hand-over/received")[0]?.manifest, issued?.manifest);
    assert.deepEqual(a.audit.of("hand-over/refused"), []);
  });

  test("by way of the store alone where it is not told to", async (context) => {
    const { rig, a, b } = await moved(context, false);
    assert.deepEqual(rig.audit.of("hand-over/issued"), []);
    assert.deepEqual([a.worker.stats().chunksGiven, b.worker.stats().chunksReceived], [0, 0]);
  });

  test("R-7: a giving worker that takes the asking one for another refuses: the move does not fail for it", async (context) => {
    let lost = 0;
    const { b } = await moved(context, true, ({ a }) => {
      const accept = a.worker.acceptPeer.bind(a.worker);
      a.worker.acceptPeer = (socket) => {
        lost += 1;
        accept(socket, newWorkerId(a.random)); // as good as a stranger
      };
    });
    faultLanded("it was asked, and refused", lost);
    assert.equal(b.worker.stats().chunksReceived, 0);
    assert.equal(b.audit.of("hand-over/received")[0]?.problem, "refused");
  });
});
