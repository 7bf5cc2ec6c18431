// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, test } from "node:test";
import type { ConnectedSandbox, ResolveAnswer, ResolveRequest } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const presenter = hash("sha256", "gateway certificate", "base64url");
const port = { purpose: "service-port", port: 3000, protocol: "http" } as const;

function ask(
  rig: ControlRig,
  { sandboxId }: Pick<ConnectedSandbox, "sandboxId">,
  more: Partial<ResolveRequest> = {},
): Promise<ResolveAnswer> {
  const asked = { credential: { kind: "none" }, wanted: port, presenter, wakes: true } as const;
  return rig.control.routes.resolve({ sandboxId, ...asked, ...more });
}

describe("a request to a paused sandbox with auto-resume", () => {
  test("wakes it once, however many come, with its memory, for as long as when it was created", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ autoResume: true, timeoutMs: 900_000 });
    const { sandboxId } = created;
    const memory = workers[0].memoryOf(sandboxId);
    await rig.service.pause(rig.caller, sandboxId, true);
    await rig.clock.advance(3000);
    const starts = workers[0].count("activate");
    const answers = await Promise.all(Array.from({ length: 60 }, () => ask(rig, created)));
    for (const answer of answers) {
      assert.equal(answer.kind, "entry");
      assert.equal(answer.entry.route.identity.generation, 2n);
    }
    assert.equal(workers[0].count("activate"), starts + 1);
    assert.equal(workers[0].memoryOf(sandboxId), memory);
    assert.equal((await rig.record(sandboxId)).endAtMs, rig.clock.wallMs() + 900_000);
  });

  test("gives a short-lived one five minutes, and later requests no more", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ autoResume: true, timeoutMs: 5000, onTimeout: "pause" });
    await rig.clock.advance(6000);
    assert.equal((await rig.record(created.sandboxId)).state, "paused", "its end came");
    assert.equal((await ask(rig, created)).kind, "entry");
    const { endAtMs } = await rig.record(created.sandboxId);
    assert.equal(endAtMs, rig.clock.wallMs() + 300_000);
    await rig.clock.advance(60_000);
    assert.equal((await ask(rig, created)).kind, "entry");
    assert.equal((await rig.record(created.sandboxId)).endAtMs, endAtMs, "activity does not extend the end");
  });

  test("waits for a pause that is under way, and then wakes it", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ autoResume: true });
    const release = workers[0].hold("snapshot");
    const pausing = rig.service.pause(rig.caller, created.sandboxId, true);
    await settle();
    const answer = ask(rig, created);
    await settle();
    assert.equal((await rig.record(created.sandboxId)).state, "pausing", "the fault landed");
    release();
    await pausing;
    assert.equal((await answer).kind, "entry");
  });

  test("that fails fails for all who waited, leaves it paused and intact, and the next one wakes it", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ autoResume: true });
    await rig.service.pause(rig.caller, created.sandboxId, true);
    const starts = workers[0].count("activate");
    workers[0].loseAnswer("activate", "before");
    const ends = await Promise.allSettled(Array.from({ length: 20 }, () => ask(rig, created)));
    faultLanded("a start that got no answer", workers[0].count("activate") - starts);
    assert.deepEqual(new Set(ends.map(({ status }) => status)), new Set(["rejected"]));
    assert.equal(workers[0].count("activate"), starts + 1, "nobody tries in its place");
    assert.equal((await rig.record(created.sandboxId)).state, "paused");
    await rig.clock.advance(5000);
    assert.equal((await ask(rig, created)).kind, "entry");
  });

  test("is told that it would wake it, and wakes nothing, where it does not ask to", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create({ autoResume: true });
    await rig.service.pause(rig.caller, created.sandboxId, true);
    const { sandboxId } = created;
    const plain = { sandboxId, credential: { kind: "none" }, wanted: port, presenter } as const;
    assert.deepEqual(await rig.control.routes.resolve(plain), { kind: "not-running", wakeable: true });
    assert.equal(workers[0].serving(sandboxId), undefined);
  });

  test("does not wake without the right, nor what its owner did not want woken, nor what has only its files left", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const woken = await rig.create({ autoResume: true });
    const plain = await rig.create();
    const files = await rig.create({ autoResume: true });
    await rig.service.pause(rig.caller, woken.sandboxId, true);
    await rig.service.pause(rig.caller, plain.sandboxId, true);
    await rig.service.pause(rig.caller, files.sandboxId, false);
    const health = { purpose: "control", scope: "metrics" } as const;
    assert.deepEqual(await ask(rig, woken, { wanted: health }), { kind: "not-running" });
    const credential = { kind: "access-token", token: plain.accessToken } as const; // another's
    assert.equal((await ask(rig, woken, { wanted: health, credential })).kind, "unauthenticated");
    assert.deepEqual(await ask(rig, plain), { kind: "not-running" });
    assert.deepEqual(await ask(rig, files), { kind: "not-running" });
    for (const { sandboxId } of [woken, plain, files])
      assert.equal((await rig.record(sandboxId)).state, "paused");
  });

  test("does not give up its memory because the worker that has it is away", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const created = await rig.create({ autoResume: true, workerId: workers[0].workerId });
    await rig.service.pause(rig.caller, created.sandboxId, true);
    rig.detach(workers[0]);
    await rig.clock.advance(120_000);
    await assert.rejects(ask(rig, created));
    assert.equal((await rig.record(created.sandboxId)).state, "paused");
    await rig.attach(workers[0]);
    assert.equal((await ask(rig, created)).kind, "entry");
  });
});

describe("the end of a sandbox", () => {
  test("is never brought nearer by a connect, and is the same to the millisecond then", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 600_000 });
    const { endAtMs } = await rig.record(sandboxId);
    await rig.clock.advance(10_000);
    assert.equal((await rig.connect(sandboxId, { timeoutMs: 1000 })).endAtMs, endAtMs);
    const later = await rig.connect(sandboxId, { timeoutMs: 900_000 });
    assert.equal(later.endAtMs, rig.clock.wallMs() + 900_000);
  });

  test("does not come early when the wall clock is set back, nor late by more than the step", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create({ timeoutMs: 10_000 });
    const { endAtMs } = await rig.record(sandboxId);
    rig.clock.step(-5000);
    await rig.clock.advance(14_000);
    assert.ok(rig.clock.wallMs() < endAtMs, "the fault landed");
    assert.equal((await rig.record(sandboxId)).state, "running");
    await rig.clock.advance(2000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
  });
});
