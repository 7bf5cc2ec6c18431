// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isSpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

describe("the end of a sandbox's life", () => {
  test("comes within a second: kill", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 5000 });
    await rig.clock.advance(4900);
    assert.equal((await rig.record(sandboxId)).state, "running");
    await rig.clock.advance(1000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
    assert.equal(workers[0].processes, 0);
  });

  test("comes within a second: pause, with or without memory as was asked", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const plain = await rig.create({ timeoutMs: 3000, onTimeout: "pause", keepMemory: false });
    const memory = await rig.create({ timeoutMs: 3000, onTimeout: "pause", keepMemory: true });
    await rig.clock.advance(4000);
    const kept = async (id: typeof plain.sandboxId): Promise<unknown> => {
      const { state, snapshot } = await rig.service.get(rig.caller, id);
      return [state, snapshot?.memory];
    };
    assert.deepEqual(await kept(plain.sandboxId), ["paused", "none"]);
    assert.deepEqual(await kept(memory.sandboxId), ["paused", "frozen-on-worker"]);
    await rig.connect(plain.sandboxId, { timeoutMs: 3000 });
    await rig.clock.advance(4000);
    assert.deepEqual(await kept(plain.sandboxId), ["paused", "none"], "the policy outlives a resume");
  });

  test("incident 32: a decision that is late does not touch a sandbox that was just given more time", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 5000 });
    const { due } = rig.sandboxes;
    let decidedOn = 0;
    // Between the decision and its write, somebody connects.
    rig.sandboxes.due = async (...args) => {
      const found = await due.apply(rig.sandboxes, args);
      decidedOn += found.length;
      if (decidedOn === 1) await rig.connect(sandboxId, { timeoutMs: 60_000 });
      return found;
    };
    await rig.clock.advance(6000);
    faultLanded("somebody connected between the decision and its write", Number(decidedOn === 1));
    decidedOn += 1;
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(workers[0].serving(sandboxId));
    await rig.clock.advance(60_000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
  });

  test("is moved by setTimeout, also nearer", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 60_000 });
    await rig.service.setTimeout(rig.caller, sandboxId, 1000);
    await rig.clock.advance(2000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
  });

  test("comes for all, however many end at once", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    await rig.attach(rig.newWorker(100));
    await rig.attach(workers[0]);
    await Promise.all(Array.from({ length: 60 }, () => rig.create({ timeoutMs: 1000 })));
    await rig.clock.advance(3000);
    assert.equal((await rig.sandboxes.live()).length, 0);
    assert.deepEqual([...(await rig.sandboxes.load()).values()], []);
  });

  test("a pause that fails then is tried again and again, and never becomes a kill", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 1000, onTimeout: "pause" });
    rig.detach(workers[0]);
    await rig.clock.advance(20_000);
    assert.equal((await rig.record(sandboxId)).state, "running");
    const tries = rig.audit.of("upkeep/failed").filter(({ task }) => task === "end of life").length;
    assert.ok(tries >= 3 && tries <= 8, `${tries} tries in 20 s`);
    await rig.attach(workers[0]);
    await rig.clock.advance(61_000);
    assert.equal((await rig.record(sandboxId)).state, "paused");
  });

  test("one that is lost for good is killed at its end; one with a snapshot waits for its caller", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const bare = await rig.create({ timeoutMs: 5000, onTimeout: "pause" });
    const saved = await rig.create({ timeoutMs: 5000, onTimeout: "pause" });
    await rig.service.pause(rig.caller, saved.sandboxId, false);
    await rig.connect(saved.sandboxId, { timeoutMs: 5000 });
    rig.detach(workers[0]);
    workers[0].vanish(bare.sandboxId);
    workers[0].vanish(saved.sandboxId);
    await rig.attach(workers[0]);
    await rig.clock.advance(6000);
    assert.equal((await rig.record(bare.sandboxId)).state, "killed");
    assert.equal((await rig.record(saved.sandboxId)).state, "lost");
  });

  test("tombstones are forgotten after a day", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1, limits: { tombstoneMs: 120_000 } });
    const { sandboxId } = await rig.create();
    await rig.service.kill(rig.caller, sandboxId);
    await rig.clock.advance(61_000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
    await rig.clock.advance(180_000);
    assert.equal(await rig.sandboxes.read(sandboxId), undefined);
  });
});

describe("stopping", () => {
  test("pauses what runs, files only, leaves no process, and everything comes back after the next start", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const created = await Promise.all(Array.from({ length: 9 }, () => rig.create()));
    const frozen = await rig.create();
    await rig.service.pause(rig.caller, frozen.sandboxId, true);
    assert.deepEqual(await rig.control.shutDown(30_000), { paused: 9, lost: 0, discarded: 1 });
    assert.deepEqual(
      workers.map(({ processes }) => processes),
      [0, 0],
    );
    await assert.rejects(rig.create(), (error) => isSpaceError(error) && error.kind === "unavailable");
    rig.crash();
    await rig.start();
    for (const worker of workers) await rig.attach(worker);
    for (const { sandboxId } of [...created, frozen]) {
      assert.equal((await rig.connect(sandboxId)).generation, 2n);
    }
  });

  test("what cannot be paused in time is lost, says so, and leaves no process either", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const fine = await rig.create();
    const stuck = await rig.create();
    const failing = await rig.create();
    const { snapshot } = workers[0];
    workers[0].snapshot = (identity, previous, key) => {
      if (identity.sandboxId === stuck.sandboxId) return new Promise(() => undefined);
      if (identity.sandboxId === failing.sandboxId) return Promise.reject(new RangeError("no"));
      return snapshot.call(workers[0], identity, previous, key);
    };
    const stopping = rig.control.shutDown(10_000);
    await rig.clock.advance(30_000);
    assert.deepEqual(await stopping, { paused: 1, lost: 2, discarded: 0 });
    await settle();
    assert.equal((await rig.record(fine.sandboxId)).state, "paused");
    for (const { sandboxId } of [stuck, failing]) {
      const { state, reason } = await rig.record(sandboxId);
      assert.deepEqual([state, reason], ["lost", "the installation was stopped"]);
    }
    assert.equal(workers[0].processes, 0);
  });
});
