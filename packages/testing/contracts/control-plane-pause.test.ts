// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KeyRing, verifyChain } from "@space/capability";
import { type ErrorCode, isSpaceError, parseDigest, type SandboxId, SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import type { FakeWorker } from "../src/fake-worker.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { testTenantKey } from "../src/sealed-objects.ts";
import { settle } from "../src/virtual-clock.ts";

const code =
  (wanted: ErrorCode) =>
  (error: unknown): boolean =>
    isSpaceError(error) && error.code === wanted;

/** The worker that serves it, and the other one. */
function sidesOf(
  workers: readonly [FakeWorker, FakeWorker],
  id: SandboxId,
): readonly [FakeWorker, FakeWorker] {
  return workers[0].processesOf(id) > 0 ? workers : [workers[1], workers[0]];
}

describe("pausing and resuming", () => {
  test("R-1: files come back on another worker, as the next generation, and the old one is gone", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const created = await rig.create();
    const { sandboxId } = created;
    const [here, there] = sidesOf(workers, sandboxId);
    here.write(sandboxId, "chart.png");
    await rig.clock.advance(1000);
    const paused = await rig.service.pause(rig.caller, sandboxId, false);
    assert.equal(paused.state, "paused");
    assert.equal(paused.endAtMs, rig.clock.wallMs());
    assert.equal(paused.startedAtMs, created.startedAtMs);
    assert.ok(paused.snapshot);
    const { digest, ...kept } = paused.snapshot;
    assert.deepEqual(kept, { memory: "none", sizeBytes: 10 });
    assert.equal(digest, (await rig.record(sandboxId)).snapshot?.digest);
    assert.equal(here.processes, 0);
    const back = await rig.connect(sandboxId, { workerId: there.workerId });
    assert.deepEqual([back.state, back.generation, back.resumed], ["running", 2n, true]);
    assert.equal(back.startedAtMs, rig.clock.wallMs());
    assert.equal(back.accessToken.reveal(), created.accessToken.reveal());
    assert.equal(there.filesOf(sandboxId), "chart.png");
    assert.equal(here.serving(sandboxId), undefined);
  });

  test("memory goes on where it was frozen, and only there", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const [here, there] = sidesOf(workers, sandboxId);
    const memory = here.memoryOf(sandboxId);
    const paused = await rig.service.pause(rig.caller, sandboxId, true);
    assert.equal(paused.snapshot?.memory, "frozen-on-worker");
    assert.equal(paused.workerId, here.workerId);
    const back = await rig.connect(sandboxId);
    assert.equal(back.workerId, here.workerId);
    assert.equal(here.memoryOf(sandboxId), memory);
    await rig.service.pause(rig.caller, sandboxId, true);
    await rig.connect(sandboxId, { workerId: there.workerId });
    await settle();
    assert.notEqual(there.memoryOf(sandboxId), memory);
    assert.equal(here.processes, 0, "the frozen copy was discarded once the new one ran");
  });

  test("a cold boot was asked for: the frozen processes do not go on", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const memory = workers[0].memoryOf(sandboxId);
    await rig.service.pause(rig.caller, sandboxId, true);
    await rig.connect(sandboxId, { memory: false });
    assert.notEqual(workers[0].memoryOf(sandboxId), memory);
  });

  test("a holder of frozen memory that is away for a moment is waited for; later the files go on elsewhere", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const [here, there] = sidesOf(workers, sandboxId);
    here.write(sandboxId, "kept");
    await rig.service.pause(rig.caller, sandboxId, true);
    rig.detach(here);
    await assert.rejects(rig.connect(sandboxId), code("worker/unreachable"));
    await rig.clock.advance(60_000);
    const back = await rig.connect(sandboxId);
    assert.equal(back.workerId, there.workerId);
    assert.equal(there.filesOf(sandboxId), "kept");
    assert.equal(here.processes, 1);
    await rig.attach(here);
    assert.equal(here.processes, 0, "retired processes never run again");
  });

  test("R-5: certificates and manifests are one chain that verifies to the root, head in the row", async (context) => {
    const { rig } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    for (let round = 0; round < 4; round += 1) {
      await rig.service.pause(rig.caller, sandboxId, round % 2 === 0);
      await rig.connect(sandboxId);
    }
    const { certificates, manifests } = await rig.sandboxes.chain(sandboxId);
    const ring = KeyRing.fromBundle(await rig.bundle(), rig.root.publicKey);
    const chain = verifyChain(certificates, manifests, ring);
    assert.deepEqual(
      chain.links.map(({ certificate }) => certificate.identity.generation),
      [5n, 4n, 3n, 2n, 1n],
    );
    assert.equal(chain.manifests.size, 4);
    const record = await rig.record(sandboxId);
    assert.equal(record.certificateHead, chain.links[0]?.digest);
    assert.equal(chain.links[0]?.certificate.restoredFrom, record.snapshot?.digest);
  });

  test("R-1: a failed start burns its generation, and the chain still verifies", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    for (const command of ["activate", "install"] as const) {
      workers[0].loseAnswer(command);
      await assert.rejects(rig.connect(sandboxId), code("worker/unreachable"));
      await settle();
      const view = await rig.service.get(rig.caller, sandboxId);
      assert.equal(view.state, "paused");
      assert.equal(workers[0].processes, 0, "torn down");
    }
    const back = await rig.connect(sandboxId);
    assert.equal(back.generation, 4n);
    const { certificates, manifests } = await rig.sandboxes.chain(sandboxId);
    verifyChain(certificates, manifests, KeyRing.fromBundle(await rig.bundle(), rig.root.publicKey));
  });

  test("many who connect at once are one resume, and all get its answer", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const before = workers[0].count("activate") + workers[1].count("activate");
    const release = workers.map((worker) => worker.hold("activate"));
    const connecting = Array.from({ length: 20 }, (_, n) =>
      rig.connect(sandboxId, { timeoutMs: 1000 * (n + 1) }),
    );
    await settle();
    for (const open of release) open();
    await rig.clock.advance(100);
    const answers = await Promise.all(connecting);
    assert.equal(workers[0].count("activate") + workers[1].count("activate"), before + 1);
    assert.equal(answers.filter(({ resumed }) => resumed).length, 1);
    assert.ok(answers.every(({ generation }) => generation === 2n));
    const record = await rig.record(sandboxId);
    assert.ok(record.endAtMs - rig.clock.wallMs() >= 19_900, "the longest life that was asked for counts");
  });

  test("a resume that fails fails all who wait for it, once, and the sandbox stays paused and intact", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].write(sandboxId, "kept");
    await rig.service.pause(rig.caller, sandboxId, false);
    const release = workers[0].hold("activate");
    workers[0].failNext("activate", {
      when: "before",
      error: new SpaceError("substrate/failed", { step: "x" }),
    });
    const connecting = Promise.allSettled(Array.from({ length: 5 }, () => rig.connect(sandboxId)));
    await settle();
    release();
    await rig.clock.advance(10);
    const outcomes = await connecting;
    assert.ok(outcomes.every((o) => o.status === "rejected" && code("substrate/failed")(o.reason)));
    assert.equal(workers[0].count("activate"), 2);
    await rig.connect(sandboxId);
    assert.equal(workers[0].filesOf(sandboxId), "kept");
  });

  test("who waits for another's transition waits for a bounded time", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const release = workers[0].hold("activate");
    const first = rig.connect(sandboxId);
    await settle();
    const second = rig.connect(sandboxId).catch((error: unknown) => error);
    await rig.clock.advance(60_000);
    assert.ok(code("deadline/passed")(await second));
    release();
    assert.equal((await first).state, "running");
  });

  test("connect to a running sandbox only ever moves its end out; resume is refused", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId, endAtMs } = await rig.create({ timeoutMs: 60_000 });
    assert.equal((await rig.connect(sandboxId, { timeoutMs: 1000 })).endAtMs, endAtMs);
    assert.equal((await rig.connect(sandboxId, { timeoutMs: 90_000 })).endAtMs, endAtMs + 30_000);
    await assert.rejects(
      rig.service.resume(rig.caller, sandboxId, { timeoutMs: 1000, memory: true }),
      code("sandbox/state"),
    );
    await rig.service.setTimeout(rig.caller, sandboxId, 500);
    assert.equal((await rig.record(sandboxId)).endAtMs, rig.clock.wallMs() + 500);
  });

  test("what is paused already, or does not run, says so", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const release = rig.service.pause(rig.caller, sandboxId, true);
    const second = rig.service.pause(rig.caller, sandboxId, true).catch((error: unknown) => error);
    await release;
    await rig.clock.advance(100);
    const error = await second;
    assert.ok(isSpaceError(error, "sandbox/state") && error.details.state === "paused");
    await assert.rejects(rig.service.setTimeout(rig.caller, sandboxId, 1000), code("sandbox/state"));
  });
});

describe("a pause that fails", () => {
  const failures = [
    ["the worker's answer is lost after the snapshot", "after", "worker/unreachable"],
    ["the worker's answer is lost before the snapshot", "before", "worker/unreachable"],
  ] as const;
  for (const [name, when, expected] of failures) {
    test(`incident 31: ${name}: it really runs on, under the same identity`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const { sandboxId } = await rig.create();
      workers[0].loseAnswer("snapshot", when);
      await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), code(expected));
      faultLanded("the worker was told, and its answer was lost", workers[0].count("snapshot"));
      const record = await rig.record(sandboxId);
      assert.equal(record.state, "running");
      assert.deepEqual(workers[0].serving(sandboxId), record.execution.identity);
      assert.equal((await rig.service.pause(rig.caller, sandboxId, true)).state, "paused");
    });
  }

  test("a manifest that is not of this execution is refused, and the sandbox runs on", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const other = await rig.create();
    const worker = workers[0];
    const { identity } = (await rig.record(other.sandboxId)).execution;
    const chain = parseDigest("c".repeat(64));
    const stolen = await worker.snapshot(identity, { previousManifest: null, chain }, testTenantKey);
    const { snapshot } = worker;
    worker.snapshot = async () => stolen;
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), code("snapshot/refused"));
    worker.snapshot = snapshot;
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(worker.serving(sandboxId));
  });

  test("an abort that cannot thaw loses the sandbox truthfully, and tells the worker to end it", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("snapshot");
    workers[0].failNext("abortPause", {
      when: "before",
      error: new SpaceError("substrate/failed", { step: "x" }),
    });
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), code("worker/unreachable"));
    await settle();
    const record = await rig.record(sandboxId);
    assert.deepEqual([record.state, record.reason], ["lost", "abort of a pause: substrate/failed"]);
    assert.equal(workers[0].processes, 0);
    await assert.rejects(rig.connect(sandboxId), code("sandbox/lost"));
  });

  test("an abort whose answer is lost is asked again until the truth is known", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("snapshot");
    workers[0].loseAnswer("abortPause", "before");
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), code("worker/unreachable"));
    assert.equal((await rig.record(sandboxId)).state, "pausing", "nobody knows yet");
    assert.equal(workers[0].serving(sandboxId), undefined);
    await rig.clock.advance(2000);
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(workers[0].serving(sandboxId));
  });

  test("a retirement that is lost after the commit changes nothing: paused, and resumed as the next generation", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    workers[0].loseAnswer("retire", "before");
    assert.equal((await rig.service.pause(rig.caller, sandboxId, true)).state, "paused");
    assert.equal(workers[0].serving(sandboxId), undefined);
    const back = await rig.connect(sandboxId);
    assert.equal(back.generation, 2n);
    assert.equal(workers[0].count("retire"), 2, "the order went before the next activation");
    assert.equal(workers[0].processes, 1);
  });

  test("a worker that is away is found out before anything changes", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    rig.detach(workers[0]);
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), code("worker/unreachable"));
    assert.equal((await rig.record(sandboxId)).state, "running");
  });

  test("incident 33: a stored manifest that is not the head's is refused, and the sandbox stays paused", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const { snapshot } = await rig.record(sandboxId);
    const old = snapshot && (await rig.sandboxes.manifest(sandboxId, snapshot.digest));
    assert.ok(old);
    await rig.connect(sandboxId);
    await rig.service.pause(rig.caller, sandboxId, false);
    const { manifest } = rig.sandboxes;
    let given = 0;
    rig.sandboxes.manifest = async () => {
      given += 1;
      return old;
    };
    await assert.rejects(rig.connect(sandboxId), code("snapshot/refused"));
    faultLanded("the older snapshot was read in the place of the newest", given);
    rig.sandboxes.manifest = manifest;
    assert.equal((await rig.record(sandboxId)).state, "paused");
  });
});
