// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ExecutionIdentity, isSpaceError, SpaceError } from "@space/model";
import { settle } from "../src/virtual-clock.ts";
import { type OpenOperation, openOperation, verdictOf, WorkerRig } from "../src/worker-rig.ts";

const fenced = (error: unknown): boolean => isSpaceError(error, "worker/fenced");

async function running(leaseSeconds = 60): Promise<{ rig: WorkerRig; identity: ExecutionIdentity }> {
  const rig = new WorkerRig("lease");
  rig.leaseSeconds = leaseSeconds;
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  return { rig, identity };
}

/** A process's stream, its answer begun and its input open. */
async function openProcess(rig: WorkerRig, identity: ExecutionIdentity): Promise<OpenOperation> {
  rig.bridge.onOperation = ({ stream }) => {
    stream.sendHead('{"status":200,"headers":[]}', false);
    stream.send(Buffer.from("first;"));
  };
  const head = rig.head(identity, { method: "POST", path: "/process.Process/Start" });
  const open = openOperation(rig.gateway(), head, false);
  await settle();
  assert.equal(open.body(), "first;");
  return open;
}

describe("R-16: a worker serves only under a lease", () => {
  test("without one it admits nothing and starts nothing; what ends something is done", async () => {
    const { rig, identity } = await running();
    rig.grantsLeases = false;
    await rig.clock.advance(59_999);
    assert.equal(verdictOf(await rig.ask(identity)), "match");
    await rig.clock.advance(1);
    const answer = await rig.ask(identity);
    assert.deepEqual([answer.status, verdictOf(answer)], [421, "refresh-route"]);
    assert.equal(rig.audit.of("admission/refreshed").at(-1)?.reason, "no-lease");
    await assert.rejects(rig.worker.control.activate(rig.request(rig.identity())), fenced);
    await assert.rejects(rig.snapshot(identity), fenced);
    await assert.rejects(rig.worker.control.abortPause(identity), fenced);
    assert.equal(rig.audit.of("lease/ended").length, 1);
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    assert.equal(rig.machine.processes.size, 0);
  });

  test("a daemon that starts has none before it was granted one", async () => {
    const rig = new WorkerRig("unleased");
    await rig.boot({ leased: false });
    assert.equal(rig.worker.stats().leased, false);
    await assert.rejects(rig.worker.control.activate(rig.request(rig.identity())), fenced);
    rig.lease();
    await settle();
    assert.equal(rig.worker.stats().leased, true);
    await rig.run(rig.identity());
  });

  for (const seconds of [15, 60, 120]) {
    test(`is renewed at a third of ${seconds} s, so an outage of two thirds is not felt`, async () => {
      const { rig, identity } = await running(seconds);
      await rig.clock.advance((seconds * 1000) / 3);
      rig.grantsLeases = false; // just after the renewal
      await rig.clock.advance((seconds * 1000 * 2) / 3);
      assert.equal(verdictOf(await rig.ask(identity)), "match");
      rig.grantsLeases = true;
      await rig.clock.advance(500);
      assert.equal(verdictOf(await rig.ask(identity)), "match");
      assert.equal(rig.audit.of("lease/ended").length, 0);
    });
  }

  test("counts from the moment at which it asked, not from the answer", async () => {
    const rig = new WorkerRig("slow answer");
    await rig.boot({ leased: false });
    const { worker } = rig;
    worker.leaseFrom({
      renew: async (request) => {
        await new Promise<void>((resolve) => rig.clock.after(10_000, resolve));
        await worker.control.takeLease(rig.authority.lease(rig.workerId, request, 60));
        return { kind: "granted" };
      },
    });
    await rig.clock.advance(10_000);
    assert.equal(worker.stats().leased, true);
    worker.leaseFrom(undefined);
    await rig.clock.advance(49_999);
    assert.equal(worker.stats().leased, true);
    await rig.clock.advance(1);
    assert.equal(worker.stats().leased, false);
  });

  test("counts on while the host sleeps, whose timers do not", async () => {
    const { rig, identity } = await running();
    rig.grantsLeases = false;
    rig.clock.sleep(60_000);
    assert.equal(verdictOf(await rig.ask(identity)), "refresh-route", "though no timer has fired");
    assert.equal(rig.audit.of("lease/ended").length, 0, "the fault landed: no timer has");
  });

  for (const isLookedAt of [true, false])
    test(`after a sleep it is asked for ${isLookedAt ? "by whoever is first to find that there is none" : "within seconds, if nobody looks"}`, async () => {
      const { rig, identity } = await running();
      await rig.clock.advance(1000); // by its timer the next request is 19 s away
      rig.clock.sleep(61_000);
      if (isLookedAt) assert.equal(verdictOf(await rig.ask(identity)), "refresh-route", "the fault landed");
      else await rig.clock.advance(5000);
      await settle();
      assert.equal(verdictOf(await rig.ask(identity)), "match");
      assert.equal(rig.audit.of("lease/ended").length, 1);
    });

  test("after a sleep through less than the term it is renewed when that was due, though the timer stood still", async () => {
    const { rig } = await running();
    const first = rig.daemon.substrate.deadlineBootMs;
    rig.clock.sleep(50_000);
    await rig.clock.advance(5000);
    assert.ok(rig.daemon.substrate.deadlineBootMs >= first + 50_000);
    assert.equal(rig.audit.of("lease/ended").length, 0);
  });

  test("a stepped wall clock neither ends nor lengthens it", async () => {
    const { rig, identity } = await running();
    rig.grantsLeases = false;
    rig.clock.step(-3_600_000);
    await rig.clock.advance(60_000);
    assert.equal(rig.worker.stats().leased, false);
    rig.grantsLeases = true;
    await rig.clock.advance(500);
    rig.clock.step(30_000);
    assert.equal(rig.worker.stats().leased, true);
    assert.ok(identity);
  });

  test("a grant of another worker, of another request, told twice, or forged is refused and changes nothing", async () => {
    const { rig } = await running();
    const other = new WorkerRig("other");
    const refused = (error: unknown): boolean => isSpaceError(error, "lease/refused");
    const taken: string[] = [];
    const { worker, authority } = rig;
    worker.leaseFrom({
      renew: async (request) => {
        taken.push(authority.lease(rig.workerId, request, 120));
        const strange = authority.lease(other.workerId, request, 120);
        await assert.rejects(worker.control.takeLease(strange), refused);
        const forged = other.authority.lease(rig.workerId, request, 120);
        await assert.rejects(worker.control.takeLease(forged), refused);
        const old = { ...request, nonce: Buffer.alloc(16).toString("base64url") };
        await assert.rejects(worker.control.takeLease(authority.lease(rig.workerId, old, 120)), refused);
        return { kind: "withheld", retryMs: 60_000 };
      },
    });
    await settle();
    await rig.clock.advance(59_999);
    const [late = ""] = taken;
    await worker.control.takeLease(late);
    await assert.rejects(worker.control.takeLease(late), refused, "told twice");
    assert.equal(worker.stats().leased, true, "120 s from the request");
  });
});

describe("R-16: streams under a lease that ends", () => {
  test("are held in both directions, and go on in order when it is back", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const operation = rig.bridge.operations.at(-1) ?? assert.fail("forwarded");
    rig.grantsLeases = false;
    await rig.clock.advance(60_000);
    open.stream.send(Buffer.from("in 1;"));
    open.stream.send(Buffer.from("in 2;"));
    operation.stream.send(Buffer.from("out 1;"));
    operation.stream.send(Buffer.from("out 2;"));
    operation.stream.end();
    await settle();
    assert.deepEqual([operation.body, open.body(), open.reset()], ["", "first;", undefined]);
    rig.grantsLeases = true;
    await rig.clock.advance(500);
    assert.deepEqual([operation.body, open.body()], ["in 1;in 2;", "first;out 1;out 2;"]);
    open.stream.end();
    await open.answer;
    await settle();
    assert.equal(open.reset(), undefined);
    assert.equal(rig.worker.stats().openStreams, 0);
  });

  test("pass nothing although no timer has fired: a process that stood still asks the clock at every piece", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const operation = rig.bridge.operations.at(-1) ?? assert.fail("forwarded");
    rig.grantsLeases = false;
    rig.clock.sleep(60_000); // as SIGSTOP does to every timer
    operation.stream.send(Buffer.from("late output"));
    open.stream.send(Buffer.from("late input"));
    await settle();
    assert.deepEqual([operation.body, open.body()], ["", "first;"]);
  });

  test("go on when the lease came back before any timer had told of its end", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const operation = rig.bridge.operations.at(-1) ?? assert.fail("forwarded");
    rig.grantsLeases = false;
    rig.clock.sleep(61_000);
    operation.stream.send(Buffer.from("late output"));
    open.stream.send(Buffer.from("late input"));
    await settle();
    assert.deepEqual([operation.body, open.body()], ["", "first;"], "the fault landed: both are held");
    rig.grantsLeases = true;
    rig.lease();
    await settle();
    assert.deepEqual([operation.body, open.body()], ["late input", "first;late output"]);
  });

  test("are ended when a sleep has kept them for longer than that, before anything passes", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const operation = rig.bridge.operations.at(-1) ?? assert.fail("forwarded");
    rig.clock.sleep(120_000);
    operation.stream.send(Buffer.from("late output"));
    await rig.clock.advance(5000);
    assert.equal(rig.worker.stats().leased, true);
    assert.deepEqual([open.body(), open.reset()], ["first;", "lease-ended"]);
  });

  test("are ended with a typed word when it stays away for 60 s more, and not before", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    rig.grantsLeases = false;
    await rig.clock.advance(119_999);
    assert.equal(open.reset(), undefined);
    await rig.clock.advance(1);
    assert.equal(open.reset(), "lease-ended");
    assert.equal(rig.bridge.operations.at(-1)?.reset, "lease-ended");
    assert.equal(rig.machine.processes.size, 1, "its guest stays frozen until it is told");
  });

  test("are cut, not continued, when the execution was retired meanwhile", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const operation = rig.bridge.operations.at(-1) ?? assert.fail("forwarded");
    rig.grantsLeases = false;
    await rig.clock.advance(60_000);
    operation.stream.send(Buffer.from("late"));
    await settle();
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    rig.grantsLeases = true;
    await rig.clock.advance(500);
    assert.deepEqual([open.reset(), open.body()], ["epoch-ended", "first;"]);
  });
});

describe("R-16: who else holds the deadline", () => {
  test("the driver and the bridge hear it before the worker serves by it, and a new bridge at once", async () => {
    const { rig } = await running();
    const first = rig.daemon.substrate.deadlineBootMs;
    assert.ok(first >= rig.clock.bootMs() + 59_000);
    assert.equal(rig.bridge.deadlineBootMs, first);
    await rig.clock.advance(20_000);
    assert.equal(rig.daemon.substrate.deadlineBootMs, first + 20_000);
    rig.bridge.deadlineBootMs = 0;
    rig.bridge.restart();
    await rig.clock.advance(100);
    assert.equal(rig.bridge.deadlineBootMs, first + 20_000);
  });

  test("where the driver may not have heard it, the lease is not taken", async () => {
    const { rig } = await running();
    rig.daemon.substrate.holdUntil = () =>
      Promise.reject(new SpaceError("substrate/failed", { step: "closed" }));
    await rig.clock.advance(60_000);
    assert.equal(rig.worker.stats().leased, false);
  });

  test("a pause whose lease had a gap fails: the freeze of a fence is not its own", async () => {
    const { rig, identity } = await running();
    rig.daemon.substrate.beforeStep = async (step) => {
      if (step !== "freeze") return;
      rig.clock.sleep(60_000); // the launcher froze the guest; then the lease came back, and it was thawed
      rig.lease();
      await settle();
    };
    await assert.rejects(rig.snapshot(identity), fenced);
    rig.daemon.substrate.beforeStep = () => undefined;
    await rig.worker.control.abortPause(identity);
    assert.equal(verdictOf(await rig.ask(identity)), "match");
  });
});
