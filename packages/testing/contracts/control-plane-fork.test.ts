// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { verifyChainExport } from "@space/capability";
import {
  type ConnectedSandbox,
  type ErrorCode,
  type ForkedSandbox,
  isSpaceError,
  SpaceError,
} from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { Fleet, turns } from "../src/fleet-rig.ts";
import { sealedCount } from "../src/sealed-objects.ts";
import { settle } from "../src/virtual-clock.ts";

const limits = { collectTickMs: 1000, purgeTickMs: 1000 };
const passesMs = 4000;
const timeoutMs = 3_600_000;
const code = (wanted: ErrorCode) => (error: unknown) => isSpaceError(error) && error.code === wanted;

const running = (forked: readonly ForkedSandbox[]): readonly ConnectedSandbox[] =>
  forked.flatMap((one) => (one.kind === "sandbox" ? [one.sandbox] : []));
const failures = (forked: readonly ForkedSandbox[]): readonly string[] =>
  forked.flatMap((one) => (one.kind === "failed" ? [one.error.code] : []));

describe("a fork", () => {
  test("R-5: children have their source's state, and ids, tokens, keys and chains of their own; it goes on untouched", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a, b } = fleet;
    const source = await rig.create({ timeoutMs: 60_000, metadata: { a: "1" }, variables: { V: "2" } });
    for (const side of [a, b])
      for (const process of side.machine.processes.values()) process.files = "the files";
    const before = await rig.record(source.sandboxId);
    await rig.clock.advance(100);
    const children = running(await rig.service.fork(rig.caller, source.sandboxId, { count: 5, timeoutMs }));
    assert.equal(children.length, 5);
    const after = await rig.record(source.sandboxId);
    assert.deepEqual({ ...after, revision: 0, goesOn: false }, { ...before, revision: 0, goesOn: false });
    const files = [a, b].flatMap((side) =>
      [...side.machine.processes.values()].map((process) => process.files),
    );
    assert.deepEqual(files, Array(6).fill("the files"));
    const all = [source, ...children];
    for (const member of ["sandboxId", "accessToken"] as const)
      assert.equal(
        new Set(all.map((one) => String(member === "accessToken" ? one[member].reveal() : one[member]))).size,
        6,
      );
    const keys = new Set<string>();
    const parents = new Set<string>();
    for (const child of children) {
      assert.deepEqual([child.generation, child.metadata, child.template], [1n, { a: "1" }, source.template]);
      assert.equal(child.endAtMs, rig.clock.wallMs() + timeoutMs);
      assert.deepEqual((await rig.record(child.sandboxId)).variables, { V: "2" });
      const exported = await rig.control.chain(child.sandboxId);
      assert.ok(exported);
      const { links } = verifyChainExport(exported, rig.root.publicKey);
      const [{ certificate } = assert.fail("it is certified")] = links;
      keys.add(certificate.publicKey);
      parents.add(JSON.stringify(certificate.origin));
    }
    assert.deepEqual([keys.size, parents.size], [5, 1], "of one manifest, with a key each");
    assert.equal(rig.audit.of("origin/issued").filter(({ reason }) => reason === "fork").length, 5);
    const route = await fleet.route(source.sandboxId, source.accessToken);
    assert.equal(
      await fleet.verdict([a, b].find((side) => side.workerId === source.workerId) ?? a, route),
      "match",
    );
  });

  test("statement 1: a capability of one is no capability of another", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a } = fleet;
    const source = await rig.create({ workerId: a.workerId });
    const [child] = running(await rig.service.fork(rig.caller, source.sandboxId, { count: 1, timeoutMs }));
    assert.ok(child);
    const own = await fleet.route(source.sandboxId, source.accessToken);
    const theirs = await fleet.route(child.sandboxId, child.accessToken);
    const side = [fleet.a, fleet.b].find(({ workerId }) => workerId === child.workerId) ?? a;
    assert.equal(await fleet.verdict(side, theirs), "match");
    assert.equal(await fleet.verdict(side, { ...theirs, capability: own.capability }), "deny");
    const answer = await rig.control.routes.resolve({
      sandboxId: child.sandboxId,
      credential: { kind: "access-token", token: source.accessToken },
      wanted: { purpose: "control", scope: "files:read" },
      presenter: a.presenter,
    });
    assert.equal(answer.kind, "unauthenticated", "nor is its source's token one of its");
  });

  test("each child succeeds or fails on its own, and how many there may be is the tenant's limit", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { limits: { ...limits, tenantSandboxes: 4 } });
    const { sandboxId } = await rig.create();
    const forked = await rig.service.fork(rig.caller, sandboxId, { count: 5, timeoutMs });
    assert.deepEqual([running(forked).length, failures(forked)], [3, ["limit/sandboxes", "limit/sandboxes"]]);
    for (const child of running(forked)) await rig.service.kill(rig.caller, child.sandboxId);
    workers[0].failNext("activate", {
      when: "before",
      error: new SpaceError("substrate/failed", { step: "x" }),
    });
    workers[1].failNext("activate", {
      when: "before",
      error: new SpaceError("substrate/failed", { step: "x" }),
    });
    const next = await rig.service.fork(rig.caller, sandboxId, { count: 3, timeoutMs });
    assert.deepEqual([running(next).length, failures(next)], [1, ["substrate/failed", "substrate/failed"]]);
    assert.equal((await rig.record(sandboxId)).state, "running");
  });

  test("a control plane that is stopped begins no more of them", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1, limits: { ...limits, atOnce: 1 } });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("activate");
    const forking = rig.service.fork(rig.caller, sandboxId, { count: 3, timeoutMs });
    await settle(turns);
    const stopping = rig.control.shutDown(30_000);
    await settle();
    release();
    const forked = await forking;
    assert.deepEqual(
      [running(forked).length, failures(forked)],
      [1, ["worker/none-free", "worker/none-free"]],
    );
    await stopping;
    assert.equal(workers[0].processes, 0);
  });

  test("of no other number than 1 to 100, and no longer than is allowed", async (context) => {
    const { rig } = await ControlRig.open(context, { limits });
    const { sandboxId } = await rig.create();
    for (const count of [0, 101, 1.5, Number.NaN])
      await assert.rejects(
        rig.service.fork(rig.caller, sandboxId, { count, timeoutMs }),
        code("input/invalid"),
      );
    const tooLong = { count: 1, timeoutMs: 10 * 24 * timeoutMs };
    await assert.rejects(rig.service.fork(rig.caller, sandboxId, tooLong), code("input/invalid"));
  });

  test("its snapshot is listed nowhere, begun with by nobody else, and gone when the last child runs", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig } = fleet;
    const source = await rig.create({ timeoutMs });
    const gate = Promise.withResolvers<void>();
    for (const side of [fleet.a, fleet.b])
      side.daemon.substrate.beforeStep = (step) => (step === "start" ? gate.promise : undefined);
    const forking = rig.service.fork(rig.caller, source.sandboxId, { count: 2, timeoutMs });
    await settle(turns);
    const [needed] = await rig.sandboxes.neededSnapshots(rig.caller.tenantId, { after: null, limit: 9 });
    assert.ok(needed, "it is held for the children");
    const template = `${needed.snapshotId}:default`;
    assert.deepEqual(await rig.service.listSnapshots(rig.caller, { limit: 9 }), []);
    await assert.rejects(rig.create({ template }), code("template/not-found"));
    await assert.rejects(rig.service.deleteSnapshot(rig.caller, template), code("template/not-found"));
    await rig.service.kill(rig.caller, source.sandboxId);
    await rig.clock.advance(passesMs);
    gate.resolve();
    assert.equal(running(await forking).length, 2, "though the source was killed, and its own was collected");
    await rig.clock.advance(passesMs);
    assert.equal(sealedCount(rig.store), 0);
  });

  test("a fork whose control plane died is forgotten in time, with all that nobody needs of it", async (context) => {
    const { rig, workers } = await ControlRig.open(context, {
      workers: 1,
      limits: { ...limits, claimMs: 20_000 },
    });
    const { sandboxId } = await rig.create({ timeoutMs });
    const release = workers[0].hold("activate");
    void rig.service.fork(rig.caller, sandboxId, { count: 2, timeoutMs }).catch(() => undefined);
    await settle();
    rig.crash();
    await rig.start();
    release();
    await rig.attach(workers[0]);
    const kept = () => rig.sandboxes.neededSnapshots(rig.caller.tenantId, { after: null, limit: 9 });
    faultLanded("its snapshot was kept", (await kept()).length);
    await rig.clock.advance(60_000);
    assert.deepEqual(await kept(), []);
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.equal(workers[0].processes, 1, "no half-started child is left");
  });

  test("R-4: a child that another replica was starting is driven on, with its origin", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1, limits });
    const { sandboxId } = await rig.create({ timeoutMs });
    workers[0].write(sandboxId, "the files");
    const release = workers[0].hold("install");
    const other = await rig.openReplica("another replica");
    const forking = rig.service.fork(rig.caller, sandboxId, { count: 1, timeoutMs });
    await settle(turns);
    const starting = (await rig.sandboxes.live()).filter(({ state }) => state === "creating");
    faultLanded("the child is being started", starting.length);
    rig.detach(workers[0]);
    await rig.attach(workers[0], other);
    release();
    await settle(turns);
    assert.deepEqual(failures(await forking), ["deadline/passed"], "the first one's word is late");
    const all = { states: ["running"], metadata: {}, order: "asc", limit: 9 } as const;
    const child = (await other.service.list(rig.caller, all)).find((one) => one.sandboxId !== sandboxId);
    assert.ok(child);
    const record = await rig.record(child.sandboxId);
    assert.equal(record.execution.identity.activation.attempt, 2);
    const exported = await other.chain(child.sandboxId);
    assert.ok(exported);
    const { links } = verifyChainExport(exported, rig.root.publicKey);
    assert.equal(links[0]?.certificate.origin.kind, "fork");
  });
});
