// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KeyRing, verifyChain } from "@space/capability";
import { type ErrorCode, isSpaceError, newWorkerId, type SandboxId, SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import type { FakeWorker } from "../src/fake-worker.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const code =
  (wanted: ErrorCode) =>
  (error: unknown): boolean =>
    isSpaceError(error) && error.code === wanted;

interface Scene {
  readonly rig: ControlRig;
  readonly id: SandboxId;
  /** The worker that serves it, and the other one. */
  readonly here: FakeWorker;
  readonly there: FakeWorker;
  readonly endAtMs: number;
}

async function running(context: Parameters<typeof ControlRig.open>[0]): Promise<Scene> {
  const { rig, workers } = await ControlRig.open(context);
  const { sandboxId: id, endAtMs } = await rig.create();
  const [here, there] = workers[0].processesOf(id) > 0 ? workers : [workers[1], workers[0]];
  here.write(id, "chart.png");
  await rig.clock.advance(1000);
  return { rig, id, here, there, endAtMs };
}

const move = ({ rig, id }: Scene, to?: FakeWorker) =>
  rig.service.move(rig.caller, id, to === undefined ? {} : { workerId: to.workerId });

/** It runs on this worker and nowhere else, with its end as it was. */
async function assertRuns({ rig, id, here, there, endAtMs }: Scene, on: FakeWorker): Promise<void> {
  await settle();
  const record = await rig.record(id);
  assert.deepEqual([record.state, record.claim], ["running", null]);
  assert.deepEqual(on.serving(id), record.execution.identity);
  const other = on === here ? there : here;
  assert.equal(other.serving(id), undefined);
  assert.equal(record.endAtMs, endAtMs);
}

describe("moving a sandbox", () => {
  test("R-1: it goes on elsewhere as the next generation, with its files, its start and its end", async (context) => {
    const scene = await running(context);
    const { rig, id, here, there } = scene;
    const before = await rig.record(id);
    const moved = await move(scene);
    assert.deepEqual([moved.workerId, moved.generation, moved.memoryMoved], [there.workerId, 2n, false]);
    assert.equal(moved.startedAtMs, before.startedAtMs);
    assert.equal(there.filesOf(id), "chart.png");
    await assertRuns(scene, there);
    assert.equal(here.processes, 0, "the frozen processes were discarded once it ran there");
    const chain = await rig.sandboxes.chain(id);
    assert.deepEqual([chain.certificates.length, chain.manifests.length], [2, 1]);
    const again = await move(scene, here);
    assert.deepEqual([again.workerId, again.generation], [here.workerId, 3n]);
  });

  test("what the memory snapshot of its substrate holds goes along, and that is said", async (context) => {
    const scene = await running(context);
    scene.here.memoryKept = "in-snapshot";
    const memory = scene.here.memoryOf(scene.id);
    const moved = await move(scene, scene.there);
    assert.equal(moved.memoryMoved, true);
    assert.equal(scene.there.memoryOf(scene.id), memory);
  });

  test("to where it is: nothing is done", async (context) => {
    const scene = await running(context);
    const moved = await move(scene, scene.here);
    assert.deepEqual([moved.generation, moved.memoryMoved], [1n, true]);
    assert.equal(scene.here.count("snapshot"), 0);
  });

  test("what cannot be begun changes nothing", async (context) => {
    const scene = await running(context);
    const { rig, id, here, there } = scene;
    const unknown = newWorkerId(rig.random);
    const before = await rig.record(id);
    await assert.rejects(rig.service.move(rig.caller, id, { workerId: unknown }), code("worker/unreachable"));
    rig.detach(there);
    await assert.rejects(move(scene), code("worker/none-free"));
    await rig.attach(there);
    rig.detach(here);
    await assert.rejects(move(scene), code("worker/unreachable"));
    await rig.attach(here);
    assert.deepEqual(await rig.record(id), before);
    await rig.service.pause(rig.caller, id, false);
    await assert.rejects(move(scene), code("sandbox/state"));
    await rig.service.kill(rig.caller, id);
    await assert.rejects(move(scene), code("sandbox/not-found"));
  });

  test("a worker without room is not moved to", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const all = await Promise.all(Array.from({ length: 20 }, () => rig.create()));
    await assert.rejects(
      rig.service.move(rig.caller, all[0]?.sandboxId ?? assert.fail(), {}),
      code("worker/none-free"),
    );
    assert.deepEqual([workers[0].processes, workers[1].processes, workers[0].count("snapshot")], [10, 10, 0]);
  });

  test("a snapshot that cannot be made is refused as that, and it runs on where it is", async (context) => {
    const scene = await running(context);
    const details = { holder: "sh", problem: "a debugger", remedy: "end it" };
    scene.here.failNext("snapshot", { when: "before", error: new SpaceError("snapshot/unsavable", details) });
    await assert.rejects(move(scene), code("snapshot/unsavable"));
    await assertRuns(scene, scene.here);
    assert.equal((await scene.rig.record(scene.id)).generation, 1n);
  });

  test("a start there that fails brings it back, with its memory", async (context) => {
    const scene = await running(context);
    const { rig, id, here, there } = scene;
    const memory = here.memoryOf(id);
    there.failNext("activate", {
      when: "before",
      error: new SpaceError("substrate/failed", { step: "start" }),
    });
    await assert.rejects(move(scene), code("substrate/failed"));
    await assertRuns(scene, here);
    assert.equal((await rig.record(id)).generation, 3n);
    assert.equal(here.memoryOf(id), memory);
    assert.equal(there.processes, 0);
  });

  test("R-16, statement 2: it does not begin there before it has ended here for certain", async (context) => {
    const scene = await running(context);
    const { rig, id, here, there } = scene;
    const release = here.hold("retire");
    let ended = false;
    const moving = assert.rejects(move(scene), code("worker/unfenced")).finally(() => {
      ended = true;
    });
    for (let round = 0; round < 30 && !ended; round += 1) {
      await settle(20);
      await rig.clock.advance(5000);
    }
    await moving;
    assert.equal((await rig.record(id)).state, "paused");
    faultLanded("its retirement was not acknowledged", here.count("retire"));
    assert.equal(there.count("activate"), 0);
    release();
    assert.equal(there.processesOf(id), 0);
  });

  test("a kill wins, wherever the move is", async (context) => {
    for (const [side, command] of [
      ["here", "snapshot"],
      ["there", "activate"],
      ["there", "install"],
    ] as const) {
      const scene = await running(context);
      const { rig, id, here, there } = scene;
      const release = scene[side].hold(command);
      const moving = assert.rejects(move(scene), code("sandbox/not-found"));
      await settle();
      faultLanded(`it waits at ${command}`, scene[side].count(command));
      const killing = rig.service.kill(rig.caller, id);
      await settle();
      release();
      await rig.clock.advance(20_000);
      await Promise.all([moving, killing]);
      await settle();
      assert.equal((await rig.record(id)).state, "killed");
      assert.deepEqual([here.processesOf(id), there.processesOf(id)], [0, 0]);
    }
  });

  test("a control plane that ends in the middle leaves it running here, or paused and intact", async (context) => {
    for (const [side, command, state] of [
      ["here", "snapshot", "running"],
      ["there", "activate", "paused"],
    ] as const) {
      const scene = await running(context);
      const { rig, id, here, there, endAtMs } = scene;
      const release = scene[side].hold(command);
      void move(scene).catch(() => undefined); // its process is gone
      await settle();
      rig.crash();
      release();
      await settle();
      await rig.start();
      await rig.attach(here);
      await rig.attach(there);
      await rig.clock.advance(30_000);
      const record = await rig.record(id);
      assert.equal(record.state, state);
      if (state === "running") await assertRuns(scene, here);
      else {
        assert.equal(there.processesOf(id), 0);
        assert.equal(record.endAtMs, endAtMs);
        const back = await rig.connect(id);
        assert.equal(back.workerId, here.workerId, "its frozen processes go on");
      }
    }
  });

  test("many at once: it is moved once for each, and every step is in the chain", async (context) => {
    const scene = await running(context);
    const { rig, id } = scene;
    const moving = Promise.all(Array.from({ length: 4 }, () => move(scene)));
    await rig.clock.advance(5000);
    const moved = await moving;
    assert.deepEqual(
      moved.map(({ generation }) => Number(generation)).toSorted((a, b) => a - b),
      [2, 3, 4, 5],
    );
    const record = await rig.record(id);
    const { certificates, manifests } = await rig.sandboxes.chain(id);
    verifyChain(certificates, manifests, KeyRing.fromBundle(await rig.bundle(), rig.root.publicKey));
    assert.deepEqual([record.generation, certificates.length, manifests.length], [5n, 5, 4]);
  });
});
