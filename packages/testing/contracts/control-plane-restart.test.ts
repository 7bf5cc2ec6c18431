// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isSpaceError, newSandboxId, parseGeneration } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { settle } from "../src/virtual-clock.ts";

/** Lets an operation begin, stops the control plane dead, and starts it again on the same store. */
async function crashDuring(rig: ControlRig, operation: () => Promise<unknown>): Promise<void> {
  const ended = operation().catch(() => undefined);
  await settle();
  rig.crash();
  await rig.start();
  void ended;
}

describe("a control plane that died", () => {
  for (const command of ["activate", "install"] as const) {
    test(`in a create, waiting for ${command}: the sandbox has failed, and its worker ends what it has`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const release = workers[0].hold(command);
      await crashDuring(rig, () => rig.create());
      release();
      await settle();
      const everything = { states: ["running", "paused"], metadata: {}, order: "asc", limit: 10 } as const;
      assert.deepEqual(await rig.service.list(rig.caller, everything), []);
      assert.equal(workers[0].processes, 1, "it was started by the dead one");
      await rig.attach(workers[0]);
      assert.equal(workers[0].processes, 0);
      assert.equal((await rig.create()).state, "running");
    });

    test(`in a resume, waiting for ${command}: paused and intact, and the next generation is a new one`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const { sandboxId } = await rig.create();
      workers[0].write(sandboxId, "kept");
      await rig.service.pause(rig.caller, sandboxId, false);
      const release = workers[0].hold(command);
      await crashDuring(rig, () => rig.connect(sandboxId));
      release();
      await settle();
      assert.equal((await rig.service.get(rig.caller, sandboxId)).state, "paused");
      await rig.attach(workers[0]);
      assert.equal(workers[0].processes, 0, "the half-started generation never runs on");
      const back = await rig.connect(sandboxId);
      assert.equal(back.generation, 3n);
      assert.equal(workers[0].filesOf(sandboxId), "kept");
    });
  }

  for (const when of ["before", "after"] as const) {
    test(`in a pause, ${when} the snapshot was made: it runs on when its worker is back`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const { sandboxId } = await rig.create();
      const release = workers[0].hold("snapshot", when);
      await crashDuring(rig, () => rig.service.pause(rig.caller, sandboxId, true));
      release();
      await settle();
      assert.equal((await rig.record(sandboxId)).state, "pausing", "without its worker nobody knows better");
      await rig.attach(workers[0]);
      const record = await rig.record(sandboxId);
      assert.equal(record.state, "running");
      assert.deepEqual(workers[0].serving(sandboxId), record.execution.identity);
    });
  }

  test("after a pause was committed, before the worker heard: paused, frozen, and resumed with its memory", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const memory = workers[0].memoryOf(sandboxId);
    workers[0].loseAnswer("retire", "before");
    await crashDuring(rig, () => rig.service.pause(rig.caller, sandboxId, true));
    assert.equal((await rig.record(sandboxId)).state, "paused");
    await rig.attach(workers[0]);
    assert.deepEqual(workers[0].holds().installed, []);
    assert.equal((await rig.record(sandboxId)).snapshot?.frozenOn, workers[0].workerId);
    await rig.connect(sandboxId);
    assert.equal(workers[0].memoryOf(sandboxId), memory);
  });

  test("in a kill: it is killed, and the worker ends it when it is back", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("retire");
    workers[0].loseAnswer("retire", "before");
    await crashDuring(rig, () => rig.service.kill(rig.caller, sandboxId));
    release();
    await settle();
    assert.equal((await rig.record(sandboxId)).state, "killed");
    assert.equal(workers[0].processes, 1, "the fault landed");
    await rig.attach(workers[0]);
    assert.equal(workers[0].processes, 0);
  });

  test("while all was quiet: everything is as it was, and keys and tokens still count", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const bundle = await rig.bundle();
    rig.crash();
    await rig.start();
    await rig.attach(workers[0]);
    assert.equal(await rig.bundle(), bundle);
    const back = await rig.connect(created.sandboxId);
    assert.deepEqual([back.state, back.generation, back.resumed], ["running", 1n, false]);
    assert.equal(back.accessToken.reveal(), created.accessToken.reveal());
  });
});

describe("a worker that says hello", () => {
  test("without an execution that it should have: lost; resumed from the newest snapshot if there is one", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const bare = await rig.create();
    const { sandboxId } = await rig.create();
    workers[0].write(sandboxId, "old");
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.connect(sandboxId);
    workers[0].write(sandboxId, "newer, and lost");
    rig.detach(workers[0]);
    workers[0].vanish(sandboxId);
    workers[0].vanish(bare.sandboxId);
    await rig.clock.advance(1000);
    assert.equal((await rig.record(sandboxId)).state, "running", "a daemon that is away changes nothing");
    await rig.attach(workers[0]);
    for (const id of [sandboxId, bare.sandboxId]) {
      const { state, reason } = await rig.record(id);
      assert.deepEqual([state, reason], ["lost", "its worker no longer has it"]);
    }
    const isLost = (error: unknown): boolean => isSpaceError(error, "sandbox/lost");
    await assert.rejects(rig.connect(bare.sandboxId), isLost);
    await assert.rejects(rig.connect(sandboxId), isLost, "incident 33: not silently back in time");
    const { snapshot } = await rig.record(sandboxId);
    assert.ok(snapshot);
    const back = await rig.connect(sandboxId, { snapshot: snapshot.digest });
    assert.equal(back.recoveredFrom, 2n, "and the answer says so");
    assert.equal(back.generation, 3n);
    assert.equal(workers[0].filesOf(sandboxId), "old");
    assert.deepEqual(rig.audit.of("worker/connected").at(-1)?.lost, 2);
  });

  test("lost also when its end was moved after the hello was sent", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    rig.detach(workers[0]);
    workers[0].vanish(sandboxId);
    const release = workers[0].hold("replaceKeys");
    await rig.attach(workers[0]);
    await rig.service.setTimeout(rig.caller, sandboxId, 5000);
    release();
    await settle();
    assert.equal((await rig.record(sandboxId)).state, "lost");
  });

  test("with everything: nothing changes, and a sandbox that is new since is not taken for lost", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    rig.detach(workers[0]);
    const release = workers[0].hold("replaceKeys");
    await rig.attach(workers[0]);
    release();
    await settle();
    const fresh = await rig.create();
    await settle();
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.equal((await rig.record(fresh.sandboxId)).state, "running");
    assert.equal(workers[0].count("retire"), 0);
  });

  test("with an execution that was retired or that nobody knows: it is retired again", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create({ workerId: workers[0].workerId });
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.connect(sandboxId, { workerId: workers[1].workerId });
    const installed = (await rig.record(sandboxId)).execution.identity;
    const older = {
      ...installed,
      generation: parseGeneration("1"),
      placement: { ...installed.placement, workerId: workers[0].workerId },
    };
    const stranger = { ...older, sandboxId: newSandboxId(rig.random) };
    rig.detach(workers[0]);
    const before = workers[0].count("retire");
    const attached = rig.control.attach(workers[0].workerId, workers[0]);
    await attached.presence.hello({
      ...workers[0].hello(),
      inventory: { installed: [older, stranger], frozen: [] },
    });
    await settle();
    assert.equal(workers[0].count("retire"), before + 2);
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(workers[1].serving(sandboxId));
  });

  test("with frozen leftovers: discarded; those that a sandbox still counts on stay", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const kept = await rig.create();
    const killed = await rig.create();
    await rig.service.pause(rig.caller, kept.sandboxId, true);
    await rig.service.pause(rig.caller, killed.sandboxId, true);
    const { snapshot } = await rig.record(killed.sandboxId);
    assert.ok(snapshot);
    await rig.service.kill(rig.caller, killed.sandboxId);
    rig.detach(workers[0]);
    const hello = workers[0].hello();
    const leftover = { sandboxId: killed.sandboxId, manifest: snapshot.digest };
    const before = workers[0].count("discard");
    const attached = rig.control.attach(workers[0].workerId, workers[0]);
    const frozen = [...hello.inventory.frozen, leftover];
    await attached.presence.hello({ ...hello, inventory: { installed: [], frozen } });
    await settle();
    assert.equal(workers[0].count("discard"), before + 1);
    assert.equal(workers[0].processesOf(kept.sandboxId), 1);
  });

  test("without frozen processes that a sandbox counted on: its files remain, and it says so", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, true);
    rig.detach(workers[0]);
    workers[0].vanish(sandboxId);
    await rig.attach(workers[0]);
    assert.equal((await rig.service.get(rig.caller, sandboxId)).snapshot?.memory, "none");
    assert.equal((await rig.connect(sandboxId)).state, "running");
  });

  test("as another worker than its certificate names, or twice, or of another's execution: refused", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const refused = (error: unknown): boolean => isSpaceError(error, "certificate/refused");
    const { presence } = rig.control.attach(workers[1].workerId, workers[1]);
    await assert.rejects(presence.hello(workers[0].hello()), refused);
    await presence.hello(workers[1].hello());
    await assert.rejects(presence.hello(workers[1].hello()), refused);
    const { sandboxId } = await rig.create({ workerId: workers[0].workerId });
    const { identity } = (await rig.record(sandboxId)).execution;
    await assert.rejects(presence.report({ identity, what: "exited", reason: "lie" }), refused);
    assert.equal((await rig.record(sandboxId)).state, "running");
  });

  test("and then reports an end: lost, once, and only what is still at that identity", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const { presence } = await rig.attach(workers[0]);
    const { sandboxId } = await rig.create();
    const { identity } = (await rig.record(sandboxId)).execution;
    const report = { identity, what: "exited", reason: "out of memory" } as const;
    await presence.report({ ...report, identity: { ...identity, generation: parseGeneration("9") } });
    assert.equal((await rig.record(sandboxId)).state, "running");
    workers[0].vanish(sandboxId);
    await presence.report(report);
    await presence.report(report);
    const record = await rig.record(sandboxId);
    assert.deepEqual([record.state, record.reason], ["lost", "exited: out of memory"]);
    await settle();
    assert.equal(workers[0].count("retire"), 1);
  });
});
