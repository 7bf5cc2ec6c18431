// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ErrorCode, isSpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const code = (wanted: ErrorCode) => (error: unknown) => isSpaceError(error, wanted);

describe("several replicas on one store", () => {
  test("R-3, R-4: a start goes on as the next attempt at the replica that its worker comes to, and the first one's word is late", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const [worker] = workers;
    const other = await rig.openReplica("other");
    const release = worker.hold("install");
    const creating = rig.create();
    const refused = assert.rejects(creating, code("deadline/passed"));
    await settle();
    const [record] = await rig.sandboxes.live();
    assert.equal(record?.state, "creating", "the fault landed");
    rig.detach(worker);
    await rig.attach(worker, other);
    release();
    await settle();
    await refused;
    const { state, execution } = await rig.record(record.sandboxId);
    assert.equal(state, "running");
    assert.deepEqual(execution.identity.activation, {
      id: record.execution.identity.activation.id,
      attempt: 2,
    });
    assert.deepEqual(worker.serving(record.sandboxId), execution.identity);
    assert.equal(worker.count("retire"), 0);
    await other.close();
  });

  test("R-4: what runs keeps its identity when its worker goes from one replica to another", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const [worker] = workers;
    const other = await rig.openReplica("other");
    const { sandboxId } = await rig.create();
    const before = await rig.record(sandboxId);
    rig.detach(worker);
    await rig.attach(worker, other);
    assert.deepEqual(await rig.record(sandboxId), before);
    assert.equal(worker.count("install"), 1);
    await other.service.pause(rig.caller, sandboxId, false);
    assert.equal((await rig.record(sandboxId)).state, "paused");
    await other.close();
  });

  test("R-4, incident 31: a pause whose worker is with another replica is ended by that one, though the first one lives on", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const [worker] = workers;
    const other = await rig.openReplica("other");
    const here = await rig.attach(worker);
    const { sandboxId } = await rig.create();
    await rig.attach(worker, other); // before the first one has noticed that it is gone
    worker.loseAnswer("snapshot");
    const release = worker.hold("snapshot");
    const pausing = assert.rejects(
      rig.service.pause(rig.caller, sandboxId, true),
      code("worker/unreachable"),
    );
    await settle();
    faultLanded(
      "the pause waits for a worker that is elsewhere",
      Number((await rig.record(sandboxId)).state === "pausing"),
    );
    here.detach();
    release();
    await pausing;
    await rig.clock.advance(10_000);
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.notEqual(worker.serving(sandboxId), undefined);
    await other.close();
  });

  test("R-16, statement 2: a move that another replica takes over begins there only when it has ended here", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const [here, there] = workers[0].processesOf(sandboxId) > 0 ? workers : [workers[1], workers[0]];
    const other = await rig.openReplica("other");
    const release = here.hold("retire");
    const moving = rig.service.move(rig.caller, sandboxId, {}).catch((error: unknown) => error);
    for (let turn = 0; turn < 50 && here.count("retire") === 0; turn += 1) await settle();
    faultLanded(
      "it is committed, and here nobody has acknowledged it",
      Number((await rig.record(sandboxId)).state === "resuming"),
    );
    rig.detach(there);
    await rig.attach(there, other);
    for (let turn = 0; turn < 10; turn += 1) {
      await settle(20);
      await rig.clock.advance(2000);
    }
    assert.equal(there.count("activate"), 0);
    assert.equal((await rig.record(sandboxId)).state, "paused");
    release();
    await rig.clock.advance(60_000);
    assert.ok((await moving) instanceof Error);
    await other.close();
  });

  test("a replica that starts leaves alone what another one drives, until its claim runs out", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1, limits: { claimMs: 30_000 } });
    const release = workers[0].hold("activate");
    const creating = rig.create();
    const ended = assert.rejects(creating);
    await settle();
    const other = await rig.openReplica("other");
    const [record] = await rig.sandboxes.live();
    assert.equal(record?.state, "creating");
    await rig.clock.advance(33_000);
    assert.equal((await rig.record(record.sandboxId)).state, "failed");
    release();
    await settle();
    await ended;
    assert.equal(workers[0].processes, 0);
    await other.close();
  });

  test("R-4, R-10: a replica that reads the first key, but not yet its bundle, looks again", async (context) => {
    const { rig } = await ControlRig.open(context);
    const other = await rig.openReplica("other", (keys) => {
      let looks = 0;
      const bundles: typeof keys.bundles = async () => {
        looks += 1;
        return looks === 1 ? [] : keys.bundles();
      };
      return { ...keys, all: () => keys.all(), change: (step) => keys.change(step), bundles };
    });
    assert.deepEqual(other.keys.view().keys, rig.control.keys.view().keys);
    await other.close();
  });

  test("R-16: a lease that another replica has granted is waited for", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 2 });
    const [worker] = workers;
    const other = await rig.openReplica("other");
    const { sandboxId } = await rig.create({ workerId: worker.workerId });
    await rig.clock.advance(50_000);
    rig.detach(worker);
    const attached = await rig.attach(worker, other); // a lease of the other one, from now on
    await rig.clock.advance(40_000);
    assert.equal((await rig.record(sandboxId)).state, "running", "by its own grants it would be over");
    attached.detach();
    await rig.clock.advance(66_000);
    assert.equal((await rig.record(sandboxId)).state, "lost");
    await other.close();
  });
});
