// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Snapshots of what goes on, and what begins with them: the real control plane, and real workers where it is about what
// they verify.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countersignManifest, newSigningKey, verifyChainExport } from "@space/capability";
import { type ErrorCode, isSpaceError, type SandboxId, SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { Fleet, turns } from "../src/fleet-rig.ts";
import { sealedCount } from "../src/sealed-objects.ts";
import { settle } from "../src/virtual-clock.ts";
import type { WorkerRig } from "../src/worker-rig.ts";

const collectTickMs = 1000;
const limits = { collectTickMs, purgeTickMs: 1000 };
/** Forgotten, put aside, and removed; and none that began before is waited for. */
const passesMs = 4 * collectTickMs;
const longMs = 3_600_000;
const code = (wanted: ErrorCode) => (error: unknown) => isSpaceError(error) && error.code === wanted;

function write(side: WorkerRig, files: string): void {
  for (const process of side.machine.processes.values()) process.files = files;
}

const filesOn = (side: WorkerRig): readonly string[] =>
  [...side.machine.processes.values()].map(({ files }) => files);

/** A sandbox that runs on the first worker, with these files. */
async function runningWith({ rig, a }: Fleet, files: string): Promise<SandboxId> {
  const { sandboxId } = await rig.create({ workerId: a.workerId, timeoutMs: longMs });
  write(a, files);
  return sandboxId;
}

const snapshots = ({ rig }: Fleet, query: object = {}) =>
  rig.service.listSnapshots(rig.caller, { limit: 10, ...query });

describe("a snapshot of what goes on", () => {
  test("the source is as it was: the same execution, the same end, and its capabilities still count", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a } = fleet;
    const sandboxId = await runningWith(fleet, "the files");
    const before = await rig.record(sandboxId);
    const { accessToken } = await rig.connect(sandboxId);
    const route = await fleet.route(sandboxId, accessToken);
    const snapshot = await rig.service.snapshot(rig.caller, sandboxId, undefined);
    assert.deepEqual(
      { ...snapshot, snapshotId: "", digest: "", template: "" },
      {
        template: "",
        snapshotId: "",
        names: [],
        sandboxId,
        digest: "",
        memory: "none",
        sizeBytes: 9,
        createdAtMs: rig.clock.wallMs(),
      },
    );
    const after = await rig.record(sandboxId);
    assert.deepEqual({ ...after, revision: 0, goesOn: false }, { ...before, revision: 0, goesOn: false });
    assert.equal(await fleet.verdict(a, route), "match");
    assert.deepEqual(await snapshots(fleet), [snapshot]);
    write(a, "other files since");
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.connect(sandboxId, { workerId: fleet.b.workerId });
    assert.deepEqual(
      filesOn(fleet.b),
      ["other files since"],
      "statement 5: its own newest snapshot is its pause's",
    );
  });

  test("R-5: a new sandbox begins with it, on another worker, and its chain says from what, down to the root", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, b } = fleet;
    const source = await runningWith(fleet, "what it begins with");
    const { template, digest, snapshotId } = await rig.service.snapshot(rig.caller, source, undefined);
    await rig.service.kill(rig.caller, source);
    await rig.clock.advance(passesMs);
    const child = await rig.create({ template, workerId: b.workerId, timeoutMs: longMs });
    assert.equal(child.generation, 1n);
    assert.equal(child.template, snapshotId);
    assert.deepEqual(filesOn(b), ["what it begins with"], "though its source was killed long before");
    await rig.service.pause(rig.caller, child.sandboxId, false);
    await rig.connect(child.sandboxId, { workerId: b.workerId, timeoutMs: longMs });
    assert.deepEqual(filesOn(b), ["what it begins with"]);
    const exported = await rig.control.chain(child.sandboxId);
    assert.ok(exported);
    const { links } = verifyChainExport(exported, rig.root.publicKey);
    assert.deepEqual(
      links.map(({ certificate }) => certificate.origin),
      [{ kind: "self" }, { kind: "template", parentManifest: digest }],
    );
  });

  test("a name is usable as a template, with and without its namespace, and goes over to the next of that name", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a, b } = fleet;
    const { tenantId } = rig.caller;
    const source = await runningWith(fleet, "first");
    const first = await rig.service.snapshot(rig.caller, source, "mine");
    assert.deepEqual(
      [first.template, first.names],
      [`${tenantId}/mine:default`, [`${tenantId}/mine:default`]],
    );
    for (const template of [first.template, "mine", "mine:default", `${first.snapshotId}:default`]) {
      const { sandboxId } = await rig.create({ template, workerId: b.workerId });
      assert.deepEqual(filesOn(b), ["first"], template);
      await rig.service.kill(rig.caller, sandboxId);
    }
    for (const template of ["mine:v2", `ten_${"a".repeat(16)}/mine:default`, `${first.snapshotId}:v2`, "no"])
      await assert.rejects(rig.create({ template }), code("template/not-found"), template);
    write(a, "second");
    const second = await rig.service.snapshot(rig.caller, source, "mine:default");
    await rig.create({ template: "mine", workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["second"]);
    assert.deepEqual(await snapshots(fleet), [second]);
    for (const name of ["", "a b", "a/b/c", "x:y:z", `${second.snapshotId}:default`, "other/name"])
      await assert.rejects(rig.service.snapshot(rig.caller, source, name), code("input/invalid"), name);
  });

  test("no other tenant begins with it, deletes it, or sees it", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig } = fleet;
    const source = await runningWith(fleet, "a secret");
    const { template, snapshotId } = await rig.service.snapshot(rig.caller, source, "mine");
    const other = await rig.newCaller("somebody else");
    const request = { timeoutMs: longMs, metadata: {}, variables: {}, onTimeout: "kill" } as const;
    const more = { keepMemory: true, autoResume: false, autoRecover: false };
    for (const named of [template, "mine", `${snapshotId}:default`, snapshotId]) {
      const created = rig.service.create(other, { template: named, ...request, ...more });
      await assert.rejects(created, code("template/not-found"));
      await assert.rejects(rig.service.deleteSnapshot(other, named), code("template/not-found"));
      assert.deepEqual(await rig.service.listSnapshots(other, { limit: 10, name: named }), []);
    }
    assert.deepEqual(await rig.service.listSnapshots(other, { limit: 10, sandboxId: source }), []);
    await assert.rejects(rig.service.snapshot(other, source, undefined), code("sandbox/not-found"));
    await assert.rejects(
      rig.service.fork(other, source, { count: 1, timeoutMs: 1 }),
      code("sandbox/not-found"),
    );
    assert.equal((await snapshots(fleet)).length, 1);
  });

  test("one that was deleted is begun with no more, is collected, and takes nothing from what began with it", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, b } = fleet;
    const source = await runningWith(fleet, "files that nobody else has");
    const { template } = await rig.service.snapshot(rig.caller, source, undefined);
    const child = await rig.create({ template, workerId: b.workerId, timeoutMs: longMs });
    await rig.service.kill(rig.caller, source);
    await rig.clock.advance(passesMs);
    faultLanded("it is kept", sealedCount(rig.store));
    await rig.service.deleteSnapshot(rig.caller, template);
    await assert.rejects(rig.service.deleteSnapshot(rig.caller, template), code("template/not-found"));
    await assert.rejects(rig.create({ template }), code("template/not-found"));
    assert.deepEqual(await snapshots(fleet), []);
    const [released] = rig.audit.of("snapshot/released");
    assert.equal(released?.sandboxId, source);
    await rig.clock.advance(passesMs);
    assert.equal(sealedCount(rig.store), 0);
    await rig.service.pause(rig.caller, child.sandboxId, false);
    await rig.connect(child.sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["files that nobody else has"]);
  });

  test("one that is deleted while a sandbox is being created from it is kept until that one runs", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, b } = fleet;
    const source = await runningWith(fleet, "needed a little longer");
    const { template, digest } = await rig.service.snapshot(rig.caller, source, undefined);
    await rig.service.kill(rig.caller, source);
    const gate = Promise.withResolvers<void>();
    b.daemon.substrate.beforeStep = (step) => (step === "start" ? gate.promise : undefined);
    const creating = rig.create({ template, workerId: b.workerId, timeoutMs: longMs });
    await settle(turns);
    await rig.service.deleteSnapshot(rig.caller, template);
    await rig.clock.advance(passesMs);
    assert.ok((await rig.sealed()).has(digest));
    gate.resolve();
    await creating;
    assert.deepEqual(filesOn(b), ["needed a little longer"]);
    await rig.clock.advance(passesMs);
    assert.equal(sealedCount(rig.store), 0);
  });

  test("R-5: one whose manifest in the store is not the one that was signed is refused", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, b } = fleet;
    const source = await runningWith(fleet, "files");
    const { template } = await rig.service.snapshot(rig.caller, source, undefined);
    write(fleet.a, "files since");
    const other = await rig.service.snapshot(rig.caller, source, undefined);
    const { keptSnapshot } = rig.sandboxes;
    const theirs = await rig.sandboxes.keptSnapshot(rig.caller.tenantId, other.snapshotId);
    assert.ok(theirs);
    const cases = [
      ["another snapshot's manifest", { countersigned: theirs.countersigned }],
      ["under another's countersignature", { countersigned: countersignManifest(newSigningKey(), "x") }],
      ["cut off", { countersigned: theirs.countersigned.slice(0, -1) }],
      ["of another sandbox", { sandboxId: (await rig.create()).sandboxId }],
    ] as const;
    for (const [what, change] of cases) {
      rig.sandboxes.keptSnapshot = async (...asked) => {
        const kept = await keptSnapshot.apply(rig.sandboxes, asked);
        return kept && { ...kept, ...change };
      };
      await assert.rejects(rig.create({ template, workerId: b.workerId }), code("snapshot/refused"), what);
    }
    rig.sandboxes.keptSnapshot = keptSnapshot;
    await rig.create({ template, workerId: b.workerId });
  });
});

describe("a snapshot that fails", () => {
  test("at the worker: nothing is kept, and the source runs on and is admitted to", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a } = fleet;
    const source = await runningWith(fleet, "files");
    const { accessToken } = await rig.connect(source);
    for (const failing of ["freeze", "snapshot"] as const) {
      a.daemon.substrate.beforeStep = (step) => {
        if (step === failing) throw new SpaceError("substrate/failed", { step });
      };
      await assert.rejects(rig.service.snapshot(rig.caller, source, undefined), code("substrate/failed"));
      assert.deepEqual((await rig.record(source)).state, "running");
      assert.equal(await fleet.verdict(a, await fleet.route(source, accessToken)), "match");
      await assert.rejects(
        rig.service.fork(rig.caller, source, { count: 2, timeoutMs: longMs }),
        code("substrate/failed"),
      );
    }
    assert.deepEqual(await snapshots(fleet), []);
    assert.deepEqual(
      [...a.machine.processes.values()].map(({ state }) => state),
      ["running"],
    );
  });

  test("in the store, before or after it was written: the source runs on", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig, a } = fleet;
    const source = await runningWith(fleet, "files");
    const { change } = rig.sandboxes;
    for (const isWritten of [false, true]) {
      rig.sandboxes.change = async (request) => {
        if (request.change.kind !== "keep-snapshot") return change.call(rig.sandboxes, request);
        if (isWritten) await change.call(rig.sandboxes, request);
        throw new SpaceError("store/failed", { step: "keep" });
      };
      await assert.rejects(rig.service.snapshot(rig.caller, source, undefined), code("store/failed"));
      rig.sandboxes.change = change;
      await rig.clock.advance(10_000);
      assert.equal((await rig.record(source)).state, "running");
      assert.deepEqual(
        [...a.machine.processes.values()].map(({ state }) => state),
        ["running"],
      );
      assert.equal((await snapshots(fleet)).length, isWritten ? 1 : 0);
    }
  });

  test("one that is paused, and one that is gone, have none", async (context) => {
    const fleet = await Fleet.open(context, limits);
    const { rig } = fleet;
    const source = await runningWith(fleet, "files");
    await rig.service.pause(rig.caller, source, false);
    const fork = { count: 1, timeoutMs: longMs };
    await assert.rejects(rig.service.snapshot(rig.caller, source, undefined), code("sandbox/state"));
    await assert.rejects(rig.service.fork(rig.caller, source, fork), code("sandbox/state"));
    await rig.service.kill(rig.caller, source);
    await assert.rejects(rig.service.snapshot(rig.caller, source, undefined), code("sandbox/not-found"));
    await assert.rejects(rig.service.fork(rig.caller, source, fork), code("sandbox/not-found"));
  });

  test("statement 6: a delete wins over it, at every step", async (context) => {
    for (const when of ["before", "after"] as const) {
      const { rig, workers } = await ControlRig.open(context, { workers: 1, limits });
      const { sandboxId } = await rig.create();
      const release = workers[0].hold("snapshot", when);
      const taken = rig.service.snapshot(rig.caller, sandboxId, undefined);
      const failed = assert.rejects(taken, code("sandbox/not-found"));
      await settle();
      const killed = rig.service.kill(rig.caller, sandboxId);
      await settle();
      release();
      await failed;
      await killed;
      await settle();
      assert.equal(workers[0].processes, 0);
      assert.deepEqual(await rig.service.listSnapshots(rig.caller, { limit: 10 }), []);
    }
  });

  for (const when of ["before", "after"] as const) {
    test(`a control plane that died in it, ${when} it was made: the source runs on when its worker is back`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1, limits });
      const { sandboxId } = await rig.create();
      const release = workers[0].hold("snapshot", when);
      void rig.service.snapshot(rig.caller, sandboxId, undefined).catch(() => undefined);
      await settle();
      assert.equal((await rig.service.get(rig.caller, sandboxId)).state, "running", "it is shown as that");
      rig.crash();
      await rig.start();
      release();
      await settle();
      await rig.attach(workers[0]);
      await rig.clock.advance(10_000);
      assert.equal((await rig.record(sandboxId)).state, "running");
      assert.ok(workers[0].serving(sandboxId));
      assert.deepEqual(await rig.service.listSnapshots(rig.caller, { limit: 10 }), []);
    });
  }

  test("a control plane that died after it was kept: it is there, and the source runs on", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1, limits });
    const { sandboxId } = await rig.create();
    const release = workers[0].hold("abortPause");
    void rig.service.snapshot(rig.caller, sandboxId, undefined).catch(() => undefined);
    await settle();
    rig.crash();
    await rig.start();
    release();
    await rig.attach(workers[0]);
    await rig.clock.advance(10_000);
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(workers[0].serving(sandboxId));
    assert.equal((await rig.service.listSnapshots(rig.caller, { limit: 10 })).length, 1);
  });

  test("meanwhile everything else that runs is asked of it waits, and is done", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1, limits });
    const { sandboxId, accessToken: token } = await rig.create();
    const release = workers[0].hold("snapshot");
    const taken = rig.service.snapshot(rig.caller, sandboxId, undefined);
    await settle();
    const timeout = rig.service.setTimeout(rig.caller, sandboxId, longMs);
    const second = rig.service.snapshot(rig.caller, sandboxId, undefined);
    const routed = rig.control.routes.resolve({
      sandboxId,
      credential: { kind: "access-token", token },
      wanted: { purpose: "control", scope: "files:read" },
      presenter: Buffer.alloc(32, 1).toString("base64url"),
    });
    const connected = rig.connect(sandboxId);
    await settle();
    release();
    assert.equal((await routed).kind, "entry");
    await Promise.all([taken, timeout, second, connected]);
    assert.equal((await rig.record(sandboxId)).endAtMs, rig.clock.wallMs() + longMs);
    assert.equal((await rig.service.pause(rig.caller, sandboxId, false)).state, "paused");
  });
});
