// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const at = ["before snapshot", "after snapshot", "before retire", "after retire"] as const;

for (const moment of at) {
  for (const keepMemory of [true, false]) {
    const kind = keepMemory ? "with memory" : "files only";
    test(`incident 18: a resume that comes ${moment} of a pause, ${kind}, leaves one execution: the next`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const [worker] = workers;
      const { sandboxId } = await rig.create();
      worker.write(sandboxId, "kept");
      const [when, command] = moment.split(" ") as ["before" | "after", "snapshot" | "retire"]; // cast: the four above
      const release = worker.hold(command, when);
      const pausing = rig.service.pause(rig.caller, sandboxId, keepMemory);
      await settle();
      const begun = worker.count(command);
      let resumed = false;
      const connecting = rig.connect(sandboxId).then((sandbox) => {
        resumed = true;
        return sandbox;
      });
      await settle();
      faultLanded("the resume came inside the pause", resumed ? 0 : begun);
      assert.ok(worker.processes <= 1);
      release();
      await pausing;
      await rig.clock.advance(1000); // who waits for another's transition looks again
      const back = await connecting;
      await settle();
      assert.deepEqual([back.state, back.generation], ["running", 2n]);
      assert.equal(worker.processes, 1);
      assert.equal(worker.filesOf(sandboxId), "kept");
      const record = await rig.record(sandboxId);
      assert.deepEqual([record.state, record.execution.identity.generation], ["running", 2n]);
      assert.deepEqual(worker.serving(sandboxId), record.execution.identity);
    });
  }
}

test("incident 22: a delete needs no resume, whatever is left of the sandbox", async (context) => {
  const { rig, workers } = await ControlRig.open(context, { workers: 2 });
  for (const fault of ["its files are gone", "its manifest is gone", "its worker is away"] as const) {
    const { sandboxId } = await rig.create({ workerId: workers[0].workerId });
    workers[0].write(sandboxId, fault);
    await rig.service.pause(rig.caller, sandboxId, fault === "its worker is away");
    const { manifest } = rig.sandboxes;
    if (fault === "its files are gone") rig.objects.clear();
    if (fault === "its manifest is gone") rig.sandboxes.manifest = async () => undefined;
    if (fault === "its worker is away") rig.detach(workers[0]);
    else {
      let refused = 0;
      await rig.connect(sandboxId).catch((error: unknown) => {
        refused += isSpaceError(error) && !isSpaceError(error, "sandbox/not-found") ? 1 : 0;
      });
      faultLanded(`it cannot be resumed: ${fault}`, refused);
    }
    const activated = workers.map((worker) => worker.count("activate"));
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal((await rig.record(sandboxId)).state, "killed", fault);
    assert.deepEqual(
      workers.map((worker) => worker.count("activate")),
      activated,
      "nothing was started for it",
    );
    rig.sandboxes.manifest = manifest;
  }
  faultLanded("frozen processes were out of reach when their sandbox was deleted", workers[0].processes);
  await rig.attach(workers[0]);
  assert.deepEqual(
    [workers[0].processes, workers[1].processes],
    [0, 0],
    "what was out of reach ends when it is back",
  );
});
