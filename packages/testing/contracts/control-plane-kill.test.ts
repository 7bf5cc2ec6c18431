// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ErrorCode, isSpaceError, type SandboxId, SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const code =
  (wanted: ErrorCode) =>
  (error: unknown): boolean =>
    isSpaceError(error) && error.code === wanted;

describe("killing a sandbox", () => {
  test("ends it at its worker before the answer; a second kill finds nothing", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].processes, 0);
    assert.equal((await rig.record(sandboxId)).state, "killed");
    await assert.rejects(rig.service.kill(rig.caller, sandboxId), code("sandbox/not-found"));
    await assert.rejects(rig.service.get(rig.caller, sandboxId), code("sandbox/not-found"));
    await assert.rejects(rig.connect(sandboxId), code("sandbox/not-found"));
  });

  test("a paused one loses its snapshot, and its frozen processes wherever they are", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, true);
    assert.equal(workers[0].processes, 1);
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].processes, 0);
    assert.deepEqual((await rig.sandboxes.chain(sandboxId)).manifests, []);
  });

  test("frozen processes end also when the order to keep them never arrived", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("retire", "before");
    await rig.service.pause(rig.caller, sandboxId, true);
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].processes, 0);
  });

  test("many at once all succeed, and it is done once", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("retire");
    const killing = Array.from({ length: 10 }, () => rig.service.kill(rig.caller, sandboxId));
    await settle();
    release();
    await rig.clock.advance(100);
    await Promise.all(killing);
    assert.equal(workers[0].count("retire"), 1);
  });

  test("a worker that is away does not keep it alive: it is told when it is back", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    rig.detach(workers[0]);
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal((await rig.record(sandboxId)).state, "killed");
    assert.equal(workers[0].processes, 1, "nobody could reach it");
    await rig.attach(workers[0]);
    assert.equal(workers[0].processes, 0);
    assert.deepEqual(await rig.sandboxes.pending({ workerId: workers[0].workerId, limit: 5 }), []);
  });

  test("a worker whose answer is lost is told again until it has confirmed", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("retire", "before");
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].processes, 1, "the fault landed");
    await rig.clock.advance(3000);
    assert.equal(workers[0].processes, 0);
  });
});

describe("a delete always wins", () => {
  for (const command of ["activate", "install"] as const) {
    test(`incident 17: a resume that finishes its ${command} after the kill is torn down and never published`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const { sandboxId } = await rig.create();
      await rig.service.pause(rig.caller, sandboxId, false);
      const release = workers[0].hold(command);
      const connecting = rig.connect(sandboxId).catch((error: unknown) => error);
      await settle();
      const killing = rig.service.kill(rig.caller, sandboxId);
      await settle();
      assert.equal((await rig.record(sandboxId)).state, "killing", "the resume is still under way");
      release();
      await killing;
      assert.ok(code("sandbox/not-found")(await connecting));
      await settle();
      assert.equal((await rig.record(sandboxId)).state, "killed");
      faultLanded(`the resume went on to its ${command} after the kill`, workers[0].count(command) - 1);
      assert.equal(workers[0].processes, 0);
      assert.equal(workers[0].serving(sandboxId), undefined);
    });
  }

  test("also over a start that takes longer than the kill waits: it ends when the start is done", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const release = workers[0].hold("activate");
    const creating = rig.create().catch((error: unknown) => error);
    await settle();
    const [record] = await rig.sandboxes.live();
    assert.ok(record !== undefined);
    const killing = rig.service.kill(rig.caller, record.sandboxId);
    await rig.clock.advance(25_000);
    await killing;
    assert.equal((await rig.record(record.sandboxId)).state, "killed");
    release();
    assert.ok(code("sandbox/not-found")(await creating));
    await settle();
    assert.equal(workers[0].processes, 0);
  });

  test("over a pause: its manifest is not committed", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("snapshot");
    const pausing = rig.service.pause(rig.caller, sandboxId, true).catch((error: unknown) => error);
    await settle();
    const killing = rig.service.kill(rig.caller, sandboxId);
    await settle();
    release();
    await killing;
    assert.ok(code("sandbox/not-found")(await pausing));
    assert.equal((await rig.record(sandboxId)).state, "killed");
    assert.deepEqual((await rig.sandboxes.chain(sandboxId)).manifests, []);
    assert.equal(workers[0].processes, 0);
  });

  test("over a pause that fails: nothing thaws", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("snapshot");
    workers[0].failNext("snapshot", { when: "after", error: new SpaceError("store/failed", { step: "x" }) });
    const pausing = rig.service.pause(rig.caller, sandboxId, true).catch((error: unknown) => error);
    await settle();
    const killing = rig.service.kill(rig.caller, sandboxId);
    await settle();
    release();
    await killing;
    await pausing;
    assert.equal(workers[0].count("abortPause"), 0);
    assert.equal(workers[0].processes, 0);
  });

  test("pause, connect, kill and timeouts at once, in any order, end in one truth", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { service, caller } = rig;
    for (let round = 0; round < 12; round += 1) {
      const { sandboxId } = await rig.create();
      const operations: readonly (() => Promise<unknown>)[] = [
        () => service.pause(caller, sandboxId, round % 2 === 0),
        () => rig.connect(sandboxId, { timeoutMs: 400_000 }),
        () => service.setTimeout(caller, sandboxId, 1000),
        () => service.pause(caller, sandboxId, true),
        ...(round % 3 === 0 ? [() => service.kill(caller, sandboxId)] : []),
      ];
      const order = Array.from(rig.random.bytes(operations.length), (byte, index) => ({ byte, index }))
        .toSorted((a, b) => a.byte - b.byte)
        .map(({ index }) => operations[index]);
      const outcomes = Promise.allSettled(order.flatMap((operation) => operation?.() ?? []));
      await rig.clock.advance(200);
      for (const outcome of await outcomes) {
        if (outcome.status === "rejected") assert.ok(isExpected(outcome.reason), String(outcome.reason));
      }
      await agree(rig, workers, sandboxId);
    }
  });
});

function isExpected(error: unknown): boolean {
  return code("sandbox/state")(error) || code("sandbox/not-found")(error);
}

/** What is stored and what runs are the same. */
async function agree(
  rig: ControlRig,
  workers: Awaited<ReturnType<typeof ControlRig.open>>["workers"],
  sandboxId: SandboxId,
): Promise<void> {
  await settle();
  const { state, execution, snapshot } = await rig.record(sandboxId);
  const serving = workers.flatMap((worker) => worker.serving(sandboxId) ?? []);
  const processes = workers.reduce((sum, worker) => sum + worker.processesOf(sandboxId), 0);
  if (state === "running") {
    assert.deepEqual(serving, [execution.identity]);
    assert.equal(processes, 1);
  } else {
    assert.ok(state === "paused" || state === "killed", state);
    assert.deepEqual(serving, []);
    assert.equal(processes, state === "paused" && snapshot?.frozenOn != null ? 1 : 0);
  }
}
