// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { type ErrorCode, isSpaceError, newSandboxId, newWorkerId, Secret, SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const code =
  (wanted: ErrorCode) =>
  (error: unknown): boolean =>
    isSpaceError(error) && error.code === wanted;

describe("creating a sandbox", () => {
  test("gives one that runs, certified, on a worker that serves exactly its identity", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ metadata: { a: "b" }, timeoutMs: 60_000 });
    assert.equal(created.state, "running");
    assert.equal(created.generation, 1n);
    assert.equal(created.resumed, false);
    assert.equal(created.endAtMs, rig.clock.wallMs() + 60_000);
    assert.match(created.accessToken.reveal(), /^[0-9a-f]{64}$/);
    const { execution } = await rig.record(created.sandboxId);
    assert.deepEqual(workers[0].serving(created.sandboxId), execution.identity);
    assert.deepEqual(
      workers[0].calls.map(({ command }) => command),
      ["replaceKeys", "takeLease", "activate", "install"],
    );
  });

  test("spreads a burst over the workers by how full they are", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    await rig.attach(rig.newWorker(30));
    await Promise.all(Array.from({ length: 20 }, () => rig.create()));
    assert.equal(workers[0].processes, 5);
  });

  test("goes to the worker that was asked for, and says when it is away or full", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const small = rig.newWorker(1);
    await rig.attach(small);
    const created = await rig.create({ workerId: small.workerId });
    assert.equal(created.workerId, small.workerId);
    await assert.rejects(rig.create({ workerId: small.workerId }), code("worker/none-free"));
    const away = newWorkerId(rig.random);
    await assert.rejects(rig.create({ workerId: away }), code("worker/unreachable"));
    assert.equal(workers[0].processes, 0);
  });

  test("R-2: what starts in a pod names it, and names the next one after that was replaced", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 0 });
    const [worker] = workers;
    worker.podUid = "pod-1";
    await rig.attach(worker);
    const { sandboxId } = await rig.create();
    const placement = async () => (await rig.record(sandboxId)).execution.identity.placement;
    assert.equal((await placement()).podUid, "pod-1");
    await rig.service.pause(rig.caller, sandboxId, false);
    rig.detach(worker);
    worker.podUid = "pod-2";
    await rig.attach(worker);
    await rig.connect(sandboxId);
    assert.deepEqual(await placement(), {
      workerId: worker.workerId,
      substrate: "namespace",
      podUid: "pod-2",
    });
  });

  test("without a worker, template or allowance nothing is left behind", async (context) => {
    const { rig, workers } = await ControlRig.open(context, {
      workers: 0,
      limits: { tenantSandboxes: 1 },
    });
    await assert.rejects(rig.create(), code("worker/none-free"));
    await rig.attach(workers[0]);
    await assert.rejects(rig.create({ template: "nope" }), code("template/not-found"));
    await assert.rejects(rig.create({ timeoutMs: 25 * 3_600_000 }), code("input/invalid"));
    await assert.rejects(rig.create({ timeoutMs: -1 }), code("input/invalid"));
    await rig.create();
    await assert.rejects(rig.create(), code("limit/sandboxes"));
    assert.equal(workers[0].processes, 1);
  });

  for (const command of ["activate", "install"] as const) {
    for (const when of ["before", "after"] as const) {
      test(`an answer to ${command} that is lost ${when} its effect fails the create and leaves no process`, async (context) => {
        const { rig, workers } = await ControlRig.open(context, { workers: 1 });
        workers[0].loseAnswer(command, when);
        await assert.rejects(rig.create(), code("worker/unreachable"));
        await settle();
        assert.equal(workers[0].processes, 0);
        assert.equal(workers[0].count("retire"), 1);
        assert.equal((await rig.create()).state, "running");
        assert.equal(workers[0].processes, 1);
      });
    }
  }

  test("a tear-down that does not arrive is repeated until it does", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    workers[0].loseAnswer("install");
    workers[0].loseAnswer("retire", "before");
    workers[0].loseAnswer("retire", "before");
    await assert.rejects(rig.create(), code("worker/unreachable"));
    await settle();
    assert.equal(workers[0].processes, 1, "the fault landed");
    await rig.clock.advance(5000);
    assert.equal(workers[0].processes, 0);
    assert.equal(workers[0].count("retire"), 3);
    assert.deepEqual(await rig.sandboxes.pending({ workerId: workers[0].workerId, limit: 5 }), []);
  });

  test("a worker's own failure that is not the caller's fault shows as unavailable, without its cause", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const error = new SpaceError("certificate/refused", { problem: "x" });
    workers[0].failNext("install", { when: "before", error });
    await assert.rejects(rig.create(), (failure) => {
      assert.ok(isSpaceError(failure, "substrate/failed"));
      return failure.cause === error;
    });
  });

  test("the same idempotency key gets the first answer, also while the first is under way", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const release = workers[0].hold("activate");
    const both = [rig.create({ idempotencyKey: "k" }), rig.create({ idempotencyKey: "k" })];
    await settle();
    release();
    await rig.clock.advance(100);
    const [first, second] = await Promise.all(both);
    assert.equal(first?.sandboxId, second?.sandboxId);
    assert.equal(first?.accessToken.reveal(), second?.accessToken.reveal());
    const third = await rig.create({ idempotencyKey: "k" });
    assert.equal(third.sandboxId, first?.sandboxId);
    assert.equal(workers[0].processes, 1);
    await assert.rejects(
      rig.create({ idempotencyKey: "k", metadata: { other: "request" } }),
      code("input/invalid"),
    );
  });

  test("an idempotency key of a failed create can be used again", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    workers[0].loseAnswer("activate");
    await assert.rejects(rig.create({ idempotencyKey: "k" }), code("worker/unreachable"));
    assert.equal((await rig.create({ idempotencyKey: "k" })).state, "running");
  });
});

describe("who may see what", () => {
  test("a missing and an unknown key are told apart from everything else, and a revoked one is unknown", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 0 });
    await assert.rejects(rig.service.authenticate(undefined), code("key/missing"));
    const { administration } = rig.control;
    const tenantId = await administration.ensureDefaultTenant();
    assert.equal(await administration.ensureDefaultTenant(), tenantId);
    const { keyId, text } = await administration.createApiKey(tenantId);
    assert.match(text.reveal(), /^e2b_[0-9a-f]{40}$/);
    assert.deepEqual(await rig.service.authenticate(text), { tenantId, keyId });
    for (const wrong of ["e2b_00", `${text.reveal()}0`, `e2b_${"0".repeat(40)}`]) {
      await assert.rejects(rig.service.authenticate(new Secret(wrong)), code("key/unknown"));
    }
    assert.equal(await administration.revokeApiKey(keyId), true);
    await assert.rejects(rig.service.authenticate(text), code("key/unknown"));
  });

  test("another tenant's sandbox looks like none in every operation", async (context) => {
    const { rig } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const other = await rig.newCaller("other");
    const connect = { timeoutMs: 1000, memory: true };
    for (const id of [sandboxId, newSandboxId(rig.random)]) {
      const missing = (error: unknown): boolean =>
        isSpaceError(error, "sandbox/not-found") && error.details.sandboxId === id;
      await assert.rejects(rig.service.get(other, id), missing);
      await assert.rejects(rig.service.connect(other, id, connect), missing);
      await assert.rejects(rig.service.resume(other, id, connect), missing);
      await assert.rejects(rig.service.pause(other, id, true), missing);
      await assert.rejects(rig.service.setTimeout(other, id, 1000), missing);
      await assert.rejects(rig.service.kill(other, id), missing);
    }
    const everything = { states: ["running", "paused"], metadata: {}, order: "asc", limit: 10 } as const;
    assert.deepEqual(await rig.service.list(other, everything), []);
    assert.equal((await rig.service.list(rig.caller, everything)).length, 1);
  });

  test("no secret shows in what is returned, thrown or recorded", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ variables: { API_TOKEN: "hush-hush" } });
    workers[0].failNext("snapshot", { when: "before", error: new SpaceError("store/failed", { step: "x" }) });
    const failure: unknown = await rig.service
      .pause(rig.caller, created.sandboxId, true)
      .catch((e: unknown) => e);
    const shown = [created, failure, rig.audit.events].map((value) => inspect(value, { depth: 12 })).join();
    assert.doesNotMatch(shown, new RegExp(`hush-hush|${created.accessToken.reveal()}`));
    assert.doesNotMatch(
      JSON.stringify(created, (_, v: unknown) => (typeof v === "bigint" ? "" : v)),
      /[0-9a-f]{64}/,
    );
  });
});
