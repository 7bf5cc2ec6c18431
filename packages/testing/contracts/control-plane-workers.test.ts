// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { describe, test } from "node:test";
import { isSpaceError } from "@space/model";
import { FrameLink, workerPresenceClient } from "@space/wire";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { endpoint, Fleet, turns } from "../src/fleet-rig.ts";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

describe("with real workers behind links", () => {
  test("a sandbox moves by pause and resume, and each worker admits exactly what it should", async (context) => {
    const fleet = await Fleet.open(context);
    const { rig, a, b } = fleet;
    const { sandboxId, accessToken } = await rig.create({ workerId: a.workerId });
    const first = await fleet.route(sandboxId, accessToken);
    assert.deepEqual(first.route.endpoint, { workerId: a.workerId, ...endpoint });
    assert.equal(await fleet.verdict(a, first), "match");
    assert.equal(await fleet.verdict(b, first), "refresh-route");
    for (const process of a.machine.processes.values()) process.files = "chart";
    await rig.service.pause(rig.caller, sandboxId, false);
    assert.deepEqual(fleet.processes(), [0, 0]);
    const back = await rig.connect(sandboxId, { workerId: b.workerId });
    assert.equal(back.generation, 2n);
    assert.deepEqual(
      [...b.machine.processes.values()].map(({ files }) => files),
      ["chart"],
    );
    assert.equal(await fleet.verdict(a, first), "refresh-route");
    assert.equal(await fleet.verdict(b, first), "refresh-route");
    const second = await fleet.route(sandboxId, accessToken);
    assert.equal(await fleet.verdict(b, second), "match");
    assert.equal(await fleet.verdict(a, second), "refresh-route");
    await rig.service.kill(rig.caller, sandboxId);
    assert.deepEqual(fleet.processes(), [0, 0]);
    assert.equal(await fleet.verdict(b, second), "refresh-route");
  });

  test("R-5: 20 pauses on two workers in turn; what is altered then is refused by the worker, and the sandbox is intact", async (context) => {
    const fleet = await Fleet.open(context);
    const { rig, a, b } = fleet;
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    for (let pauses = 1; pauses <= 20; pauses += 1) {
      await rig.service.pause(rig.caller, sandboxId, false);
      await rig.connect(sandboxId, { workerId: (pauses % 2 === 0 ? a : b).workerId });
    }
    await rig.service.pause(rig.caller, sandboxId, false);
    const sealed = await rig.sealed();
    // A daemon that starts again remembers nothing: what it restores from it verifies down to generation 1.
    await fleet.reboot(a);
    const [newest, ...older] = await rig.sandboxes.segments(sandboxId, 100);
    const oldest = older.at(-1);
    assert.ok(newest !== undefined && oldest !== undefined);
    let refused = 0;
    for (const { digest } of [oldest, newest]) {
      const repair = sealed.alter(digest);
      await assert.rejects(
        rig.connect(sandboxId, { workerId: a.workerId }),
        (error) => isSpaceError(error, "snapshot/chain-refused") && error.details.problem === "damaged",
      );
      refused += 1;
      assert.equal((await rig.record(sandboxId)).state, "paused");
      assert.deepEqual(fleet.processes(), [0, 0]);
      repair();
    }
    faultLanded("an altered chain was read", refused - 1);
    assert.equal((await rig.connect(sandboxId, { workerId: a.workerId })).state, "running");
  });

  test("memory goes on where it was frozen", async (context) => {
    const { rig, a } = await Fleet.open(context);
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    for (const process of a.machine.processes.values()) process.memory = "counter 7";
    assert.equal((await rig.service.pause(rig.caller, sandboxId, true)).snapshot?.memory, "frozen-on-worker");
    assert.equal((await rig.connect(sandboxId)).workerId, a.workerId);
    assert.deepEqual(
      [...a.machine.processes.values()].map(({ memory, state }) => [memory, state]),
      [["counter 7", "running"]],
    );
  });

  test("incident 21: a daemon that is killed and comes back keeps its sandboxes running", async (context) => {
    const fleet = await Fleet.open(context);
    const { rig, a } = fleet;
    const { sandboxId, accessToken } = await rig.create({ workerId: a.workerId });
    const entry = await fleet.route(sandboxId, accessToken);
    fleet.cut(a);
    a.kill();
    await settle(turns);
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), (error) =>
      isSpaceError(error, "worker/unreachable"),
    );
    assert.equal((await rig.service.get(rig.caller, sandboxId)).state, "running");
    faultLanded("the daemon was gone", rig.audit.of("worker/disconnected").length);
    await fleet.boot(a);
    await fleet.dial(a);
    assert.equal((await rig.service.get(rig.caller, sandboxId)).state, "running");
    assert.equal(await fleet.verdict(a, entry), "match");
    assert.equal((await rig.service.pause(rig.caller, sandboxId, true)).state, "paused");
  });

  test("a link that is cut in the middle of a start fails it, and the start is undone when the worker dials again", async (context) => {
    const fleet = await Fleet.open(context);
    const { rig, a } = fleet;
    const gate = Promise.withResolvers<void>();
    a.daemon.substrate.beforeStep = (step) => (step === "start" ? gate.promise : undefined);
    const creating = rig.create({ workerId: a.workerId }).catch((error: unknown) => error);
    await settle(turns);
    fleet.cut(a);
    const error = await creating;
    assert.ok(isSpaceError(error, "worker/unreachable"), String(error));
    gate.resolve();
    await settle(turns);
    assert.deepEqual(fleet.processes(), [1, 0], "the fault landed");
    await fleet.dial(a);
    assert.deepEqual(fleet.processes(), [0, 0]);
  });

  test("an execution that ends by itself is lost, and its caller is told", async (context) => {
    const { rig, a } = await Fleet.open(context);
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    const { identity } = (await rig.record(sandboxId)).execution;
    a.machine.end(identity.activation.id, "out of memory");
    await settle(turns);
    const { state, reason } = await rig.record(sandboxId);
    assert.deepEqual([state, reason], ["lost", "exited: out of memory"]);
    await assert.rejects(rig.connect(sandboxId), (error) => isSpaceError(error, "sandbox/lost"));
  });

  test("a peer that says nothing, or stops answering, is cut off", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 0 });
    const side = new WorkerRig("silent");
    const [mute, accepted] = duplexPair();
    rig.control.accept(accepted, side.workerId);
    await rig.clock.advance(15_000);
    assert.equal(accepted.destroyed, true);
    mute.destroy();

    const [near, far] = duplexPair();
    rig.control.accept(far, side.workerId);
    const link = new FrameLink(near, {
      dialled: true,
      onOpen: () => ({ onData() {}, onEnd() {}, onReset() {} }),
    });
    const inventory = { installed: [], frozen: [] };
    const hello = { workerId: side.workerId, substrate: "namespace", capacity: 1, freeSlots: 1 } as const;
    const presence = workerPresenceClient(link, rig.clock);
    const store = { held: null, next: "n".repeat(22) };
    const welcome = await presence.hello({
      ...hello,
      endpoint,
      inventory,
      bundleVersion: 0,
      feedPosition: 0,
      store,
    });
    assert.equal(welcome.bundle, await rig.bundle());
    near.pause(); // hears no ping
    await rig.clock.advance(31_000);
    assert.equal(far.destroyed, true);
    assert.deepEqual(rig.control.workers(), []);
  });

  test("what is no command ends at the link's edge", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 0 });
    const side = new WorkerRig("odd");
    const [near, far] = duplexPair();
    rig.control.accept(far, side.workerId);
    const link = new FrameLink(near, { dialled: true });
    const resets = await Promise.all(
      ["{}", "not json", '{"rpc":"control/hello","params":{"workerId":1}}'].map(
        (head) =>
          new Promise<string>((resolve) => {
            const end = (reason: string): void => resolve(reason);
            link.open(
              head,
              {
                onHead: (bytes) => end(bytes.toString()),
                onData() {},
                onEnd: () => end("end"),
                onReset: end,
              },
              true,
            );
          }),
      ),
    );
    assert.equal(resets.length, 3);
    assert.match(resets[2] ?? "", /input\/invalid/);
    const refused = rig.audit.of("worker/refused");
    assert.ok(refused.length >= 2 && refused.every(({ workerId }) => workerId === side.workerId));
  });
});
