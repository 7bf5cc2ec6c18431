// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isSpaceError, type SandboxId } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import type { FakeWorker } from "../src/fake-worker.ts";
import { settle } from "../src/virtual-clock.ts";

const lost = (error: unknown): boolean => isSpaceError(error, "sandbox/lost");
const second = 1000;

/** One that runs on the first worker, with an older snapshot. */
async function withOlderSnapshot(
  rig: ControlRig,
  worker: FakeWorker,
  more: { autoRecover?: boolean } = {},
): Promise<SandboxId> {
  const { sandboxId } = await rig.create({ workerId: worker.workerId, timeoutMs: 3_600_000, ...more });
  worker.write(sandboxId, "kept");
  await rig.service.pause(rig.caller, sandboxId, false);
  await rig.connect(sandboxId, { workerId: worker.workerId, timeoutMs: 3_600_000 });
  worker.write(sandboxId, "newer, and lost");
  return sandboxId;
}

describe("R-16: a worker without heartbeat", () => {
  test("keeps its sandboxes until its lease has run out for certain; then they are lost, with the reason", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const sandboxId = await withOlderSnapshot(rig, workers[0]);
    rig.detach(workers[0]);
    await rig.clock.advance(63 * second);
    assert.equal((await rig.record(sandboxId)).state, "running", "it may still serve");
    await rig.clock.advance(3 * second);
    const { state, reason } = await rig.record(sandboxId);
    assert.deepEqual([state, reason], ["lost", "its worker's lease ran out"]);
    await assert.rejects(rig.connect(sandboxId), lost);
    assert.equal(workers[1].processesOf(sandboxId), 0, "nobody asked for a recovery");
  });

  test("statement 5: goes on elsewhere only for who names the newest snapshot, and is told what is missing", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const sandboxId = await withOlderSnapshot(rig, workers[0]);
    rig.detach(workers[0]);
    await rig.clock.advance(70 * second);
    const { snapshot } = await rig.record(sandboxId);
    assert.ok(snapshot);
    const other = { snapshot: workers[1].workerId.padEnd(64, "0") as typeof snapshot.digest };
    await assert.rejects(rig.connect(sandboxId, other), lost);
    const back = await rig.connect(sandboxId, { snapshot: snapshot.digest });
    assert.deepEqual([back.generation, back.recoveredFrom], [3n, 2n]);
    assert.equal(workers[1].filesOf(sandboxId), "kept");
    await rig.service.pause(rig.caller, sandboxId, false);
    assert.equal(
      (await rig.service.get(rig.caller, sandboxId)).recoveredFrom,
      null,
      "the newest is kept again",
    );
  });

  test("is recovered elsewhere where that was asked for, and says so", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const sandboxId = await withOlderSnapshot(rig, workers[0], { autoRecover: true });
    rig.detach(workers[0]);
    await rig.clock.advance(63 * second);
    assert.equal(workers[1].processesOf(sandboxId), 0, "not while the first may act");
    await rig.clock.advance(5 * second);
    const view = await rig.service.get(rig.caller, sandboxId);
    assert.deepEqual([view.state, view.generation, view.recoveredFrom], ["running", 3n, 2n]);
    assert.ok(workers[1].serving(sandboxId));
    assert.equal(rig.audit.of("sandbox/recovered").at(-1)?.lost, "2");
    // It comes back: its execution was retired meanwhile, so it kills it, and confirms.
    assert.equal(workers[0].processes, 1, "the fault landed: it still has the old one");
    await rig.attach(workers[0]);
    assert.equal(workers[0].processes, 0);
    assert.deepEqual(await rig.sandboxes.pending({ sandboxId, limit: 10 }), []);
  });

  test("after a restart of the control plane every lease counts as granted at that instant", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const sandboxId = await withOlderSnapshot(rig, workers[0]);
    rig.detach(workers[0]);
    await rig.clock.advance(50 * second);
    rig.crash();
    await rig.start();
    await rig.clock.advance(63 * second);
    assert.equal((await rig.record(sandboxId)).state, "running");
    await rig.clock.advance(4 * second);
    assert.equal((await rig.record(sandboxId)).state, "lost");
  });

  test("sandboxes of one that renews go on for ever", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const { presence } = await rig.attach(workers[0]);
    const { sandboxId } = await rig.create({ timeoutMs: 3_600_000 });
    for (let round = 0; round < 10; round += 1) {
      await rig.clock.advance(20 * second);
      assert.deepEqual(await workers[0].renew(presence), { kind: "granted" });
    }
    assert.equal((await rig.record(sandboxId)).state, "running");
  });
});

describe("R-16: no lease while something is unacknowledged", () => {
  test("a retirement: withheld, and granted once it is acknowledged", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const { presence } = await rig.attach(workers[0]);
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("retire");
    const killing = rig.service.kill(rig.caller, sandboxId);
    await settle();
    const asked = workers[0].renew(presence);
    await rig.clock.advance(5 * second);
    assert.equal((await asked).kind, "withheld");
    assert.equal(rig.audit.of("lease/withheld").length, 1);
    const again = workers[0].renew(presence);
    await settle();
    release();
    assert.deepEqual(await again, { kind: "granted" });
    await killing;
  });

  test("a successor elsewhere waits for the predecessor's worker, or for the end of its lease", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create({ workerId: workers[0].workerId, timeoutMs: 3_600_000 });
    const release = workers[0].hold("retire"); // hears of the retirement, and never gets it done
    const pausing = rig.service.pause(rig.caller, sandboxId, false);
    await rig.clock.advance(11 * second);
    assert.equal((await pausing).state, "paused");
    const refused = assert.rejects(
      rig.connect(sandboxId, { workerId: workers[1].workerId }),
      (error) => isSpaceError(error, "worker/unfenced") && error.details.retryAfterMs > 0,
    );
    await rig.clock.advance(11 * second);
    await refused;
    assert.equal(workers[1].processesOf(sandboxId), 0);
    assert.equal((await rig.record(sandboxId)).state, "paused", "nothing was changed");
    rig.detach(workers[0]);
    await rig.clock.advance(66 * second);
    assert.equal((await rig.connect(sandboxId, { workerId: workers[1].workerId })).state, "running");
    release();
  });
});

describe("R-12: the feed of a receiver", () => {
  test("one that was away for an hour is told everything that it missed, in order, and acknowledges it", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const ids: SandboxId[] = [];
    for (let count = 0; count < 5; count += 1) ids.push((await rig.create()).sandboxId);
    rig.detach(workers[0]);
    for (const id of ids.slice(0, 3)) {
      const killed = rig.service.kill(rig.caller, id);
      await rig.clock.advance(second);
      await killed;
    }
    rig.clock.sleep(3600 * second);
    await rig.clock.advance(2 * second);
    const before = workers[0].calls.length;
    await rig.attach(workers[0]);
    const retired = workers[0].calls
      .slice(before)
      .filter(({ command }) => command === "retire")
      .map(({ sandboxId }) => sandboxId);
    assert.deepEqual(retired.slice(0, 3), ids.slice(0, 3));
    assert.equal(workers[0].processes, 0, "the others were lost with its lease");
    assert.deepEqual(await rig.sandboxes.pending({ workerId: workers[0].workerId, limit: 10 }), []);
  });

  test("what was told and not acknowledged is told again over the next link, and a repetition is harmless", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("retire", "after");
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].count("retire"), 1, "the fault landed: it was done, and the answer was lost");
    rig.detach(workers[0]);
    await rig.attach(workers[0]);
    assert.equal(workers[0].count("retire"), 2);
    assert.deepEqual(await rig.sandboxes.pending({ sandboxId, limit: 10 }), []);
  });

  test("one that knows of less than it has acknowledged is an older copy, and is refused", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.kill(rig.caller, sandboxId);
    await settle();
    rig.detach(workers[0]);
    assert.ok(workers[0].feedPosition > 0, "the fault can land");
    workers[0].feedPosition = 0;
    const { presence } = rig.control.attach(workers[0].workerId, workers[0]);
    await assert.rejects(presence.hello(workers[0].hello()), (error) =>
      isSpaceError(error, "worker/superseded"),
    );
  });

  test("a record set that differs is found by its digest at the next renewal, and repaired", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const { presence } = await rig.attach(workers[0]);
    const [kept, gone] = [await rig.create(), await rig.create()];
    await workers[0].renew(presence);
    assert.equal(rig.audit.of("worker/reconciled").length, 0, "equal sets are not asked for");
    workers[0].vanish(gone.sandboxId);
    await workers[0].renew(presence);
    await settle();
    assert.equal(rig.audit.of("worker/reconciled").at(-1)?.lost, 1);
    assert.equal((await rig.record(gone.sandboxId)).state, "lost");
    assert.equal((await rig.record(kept.sandboxId)).state, "running");
  });
});
