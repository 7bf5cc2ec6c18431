// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ExecutionIdentity, SpaceError } from "@space/model";
import { headerValue, streamWindowBytes } from "@space/wire";
import { settle } from "../src/virtual-clock.ts";
import { type OpenOperation, openOperation, WorkerRig } from "../src/worker-rig.ts";

async function running(): Promise<{ rig: WorkerRig; identity: ExecutionIdentity }> {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  return { rig, identity };
}

/** A process's stream, with its answer begun and its input open. */
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

/** Both legs have heard this word, and from now on no byte passes either way. */
async function assertCut(rig: WorkerRig, open: OpenOperation, reason: string): Promise<void> {
  const operation = rig.bridge.operations.at(-1) ?? assert.fail("an operation was forwarded");
  // No time passes here: an idle stream hears of it within 100 ms too, and not at its next piece.
  await settle();
  assert.deepEqual([open.reset(), operation.reset], [reason, reason]);
  operation.stream.send(Buffer.from("late output"));
  open.stream.send(Buffer.from("late input"));
  await settle();
  assert.equal(open.reset(), reason);
  assert.equal(operation.reset, reason);
  assert.equal(open.body(), "first;");
  assert.equal(operation.body, "");
  assert.equal(rig.worker.stats().openStreams, 0);
}

describe("R-21: the end of the epoch ends every stream, both ways, at once", () => {
  test("a retirement", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    await assertCut(rig, open, "epoch-ended");
    assert.equal(rig.daemon.store.read(identity.sandboxId)?.epoch, 2n);
  });

  test("the start of a pause; a pause that fails does not revive them, in a new epoch others are admitted", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    rig.daemon.substrate.beforeStep = (step) => {
      if (step === "snapshot") throw new Error("disk");
    };
    await assert.rejects(rig.snapshot(identity));
    await assertCut(rig, open, "epoch-ended");
    const during = await rig.ask(identity);
    assert.equal(during.status, 421);
    assert.equal(rig.audit.of("admission/refreshed")[0]?.reason, "pausing");
    await rig.worker.control.abortPause(identity);
    assert.equal(open.reset(), "epoch-ended");
    assert.ok((rig.daemon.store.read(identity.sandboxId)?.epoch ?? 0n) > 2n);
    rig.bridge.onOperation = () => undefined;
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("the install of another generation", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const next = rig.identity({ sandboxId: identity.sandboxId, generation: 2 });
    await rig.run(next);
    await assertCut(rig, open, "epoch-ended");
    assert.deepEqual([...rig.machine.processes.keys()], [next.activation.id], "the older process has ended");
  });

  test("R-18: another attempt of the same process keeps them; new opens need the new identity", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    const next = { ...identity, activation: { ...identity.activation, attempt: 2 } };
    await rig.run(next);
    rig.bridge.operations[0]?.stream.send(Buffer.from("second;"));
    open.stream.send(Buffer.from("input"));
    await settle();
    assert.equal(open.body(), "first;second;");
    assert.equal(rig.bridge.operations[0]?.body, "input");
    rig.bridge.onOperation = () => undefined;
    assert.equal((await rig.ask(identity)).status, 421);
    assert.equal((await rig.ask(next)).status, 200);
  });

  test("the execution's own end, with its own word, and the control plane's report", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    rig.machine.end(identity.activation.id, "killed by signal 9");
    await assertCut(rig, open, "execution-gone");
    const answer = await rig.ask(identity);
    assert.equal(answer.status, 421);
    assert.equal(rig.audit.of("admission/refreshed")[0]?.reason, "execution-gone");
    assert.equal(rig.daemon.store.allActivations().length, 0);
  });

  test("bytes that wait for a slow reader are under the lease too, also when both sides have ended", async () => {
    const { rig, identity } = await running();
    let got = 0;
    let reset = "";
    rig.bridge.onRequestEnd = ({ stream }) => {
      stream.sendHead('{"status":200,"headers":[]}', false);
      stream.send(Buffer.alloc(2 * streamWindowBytes - 1));
      stream.end();
    };
    const slow = rig.gateway().open(
      JSON.stringify(rig.head(identity)),
      {
        onData: (chunk) => {
          got += chunk.length;
        },
        onEnd: () => undefined,
        onReset: (reason) => {
          reset = reason;
        },
      },
      true,
    );
    await settle();
    assert.equal(got, streamWindowBytes);
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    slow.consumed(got);
    await settle();
    assert.equal(reset, "epoch-ended");
    assert.equal(got, streamWindowBytes);
    assert.equal(rig.worker.stats().openStreams, 0);
  });

  test("R-21: a stream that outlived its epoch, because nobody cut it, is caught at its next piece, in either direction", async () => {
    for (const from of ["guest", "gateway", "guest's end", "gateway's end"] as const) {
      const { rig, identity } = await running();
      const open = await openProcess(rig, identity);
      // The planted fault: the durable epoch advances, and its streams are not told.
      const record = rig.daemon.store.read(identity.sandboxId) ?? assert.fail("it is installed");
      assert.ok(rig.daemon.store.replace(record, { ...record, epoch: record.epoch + 1n }));
      assert.equal(rig.worker.stats().openStreams, 1, "the fault has landed");
      const operation = rig.bridge.operations.at(-1) ?? assert.fail("an operation was forwarded");
      if (from === "guest") operation.stream.send(Buffer.from("late output"));
      else if (from === "gateway") open.stream.send(Buffer.from("late input"));
      else if (from === "guest's end") operation.stream.end();
      else open.stream.end();
      await settle();
      await assertCut(rig, open, "epoch-ended");
    }
  });

  test("R-21: the end is durable before a stream hears of it, and a store that cannot write it ends nothing", async () => {
    const { rig, identity } = await running();
    const open = await openProcess(rig, identity);
    rig.daemon.store.beforeWrite = (what) => {
      if (what === "retire") throw new SpaceError("store/failed", { step: what });
    };
    await assert.rejects(rig.worker.control.retire(rig.authority.retirement(identity), null), {
      code: "store/failed",
    });
    await settle();
    assert.equal(open.reset(), undefined);
    let epochWhenTold: bigint | undefined;
    rig.daemon.store.beforeWrite = () => undefined;
    rig.bridge.onReset = () => {
      epochWhenTold = rig.daemon.store.read(identity.sandboxId)?.epoch;
    };
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    await assertCut(rig, open, "epoch-ended");
    assert.equal(epochWhenTold, 2n);
  });

  test("streams of other sandboxes do not notice", async () => {
    const { rig, identity } = await running();
    const other = rig.identity();
    await rig.run(other);
    const open = await openProcess(rig, other);
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    await settle();
    assert.equal(open.reset(), undefined);
    assert.equal(rig.worker.stats().openStreams, 1);
  });
});

describe("a pause and the operations that are under way", () => {
  test("short ones may end, new ones are refused meanwhile, and only then the epoch ends", async () => {
    const { rig, identity } = await running();
    const finish = rig.bridge.onRequestEnd;
    rig.bridge.onRequestEnd = () => undefined;
    const write = openOperation(rig.gateway(), rig.head(identity, { method: "POST", path: "/files" }), true);
    await settle();
    const paused = rig.snapshot(identity);
    await settle();
    assert.equal((await rig.ask(identity)).status, 421);
    assert.ok(!rig.bridge.calls.includes("quiesce"));
    const [operation] = rig.bridge.operations;
    finish(operation ?? assert.fail("it was forwarded"));
    assert.equal((await write.answer).status, 200);
    assert.equal((await write.answer).reset, undefined);
    await paused;
    assert.ok(rig.bridge.calls.includes("quiesce"));
  });

  test("a short one that does not end is cut at the limit", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = () => undefined;
    const stuck = openOperation(rig.gateway(), rig.head(identity), true);
    await settle();
    const paused = rig.snapshot(identity);
    await rig.clock.advance(1999);
    assert.equal(stuck.reset(), undefined);
    await rig.clock.advance(1);
    await paused;
    assert.equal((await stuck.answer).reset, "epoch-ended");
  });

  test("one that its gateway gives up is not waited for", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = () => undefined;
    const given = openOperation(rig.gateway(), rig.head(identity), true);
    await settle();
    const paused = rig.snapshot(identity);
    given.stream.reset("cancelled");
    await paused;
    assert.equal(rig.bridge.operations[0]?.reset, "cancelled");
  });
});

describe("the relay", () => {
  test("each side's flow control holds the other back, and nothing is lost", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = () => undefined;
    const head = rig.head(identity, { method: "POST", path: "/process.Process/Start" });
    const gateway = rig.gateway();
    let got = 0;
    const stream = gateway.open(
      JSON.stringify(head),
      {
        onData: (chunk) => {
          got += chunk.length; // never given back
        },
        onEnd: () => undefined,
        onReset: (reason) => assert.fail(reason),
      },
      true,
    );
    await settle();
    const [operation] = rig.bridge.operations;
    operation?.stream.sendHead('{"status":200,"headers":[]}', false);
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    for (let room = true; room && sent < 100 * streamWindowBytes; sent += chunk.length) {
      room = operation?.stream.send(chunk) ?? false;
      await settle(2);
    }
    assert.ok(sent <= 3 * streamWindowBytes, `held back after ${sent}`);
    await settle();
    stream.consumed(got);
    await settle();
    assert.equal(got, sent, "what was held flows when there is room");
  });

  test("the word of a reset by the bridge reaches the gateway; a broken bridge is a transport failure (R-20)", async () => {
    const { rig, identity } = await running();
    const first = await openProcess(rig, identity);
    rig.bridge.operations[0]?.stream.reset("guest-gone");
    assert.equal((await first.answer).reset, "guest-gone");
    const second = await openProcess(rig, identity);
    rig.bridge.dropLinks();
    assert.equal((await second.answer).reset, "transport");
    assert.equal(rig.worker.stats().openStreams, 0);
  });

  test("R-20: without a bridge an admitted operation is answered as not forwarded; the next connection is verified anew", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    rig.bridge.dropLinks();
    await settle();
    const head = rig.head(identity);
    const answer = await rig.send(link, head);
    assert.equal(answer.status, 503);
    assert.equal(headerValue(answer.headers, "space-failure"), "endpoint/unverifiable");
    assert.equal(headerValue(answer.headers, "space-admitted"), head.admission);
    assert.deepEqual(rig.bridge.operations, []);
    await assert.rejects(rig.worker.control.activate(rig.request(rig.identity())), {
      code: "endpoint/unverifiable",
    });
    assert.equal(rig.machine.processes.size, 1, "nothing was started");
    await rig.clock.advance(100);
    assert.equal(rig.worker.stats().bridgeConnections, 2);
    assert.equal((await rig.send(link, rig.head(identity))).status, 200);
  });

  test("R-19: a new bridge process is told what runs; a process that it refuses is lost, the others go on", async () => {
    const { rig, identity } = await running();
    const other = rig.identity();
    await rig.run(other);
    const impostor = rig.machine.processes.get(identity.activation.id) ?? assert.fail("it runs");
    impostor.secret = new Uint8Array(32);
    rig.bridge.restart();
    await rig.clock.advance(200);
    assert.equal((await rig.ask(other)).status, 200);
    assert.equal((await rig.ask(identity)).status, 421);
    assert.equal(rig.audit.of("endpoint/refused")[0]?.problem, "endpoint/mismatch");
    assert.deepEqual([...rig.machine.processes.keys()], [other.activation.id], "its process was ended");
  });

  test("a bridge that cannot be verified is tried again, ever more slowly, and nothing is forwarded", async () => {
    const { rig, identity } = await running();
    rig.bridge.beforeCommand = () => {
      throw new SpaceError("endpoint/unverifiable", { problem: "not today" });
    };
    rig.bridge.dropLinks();
    await settle();
    await rig.clock.advance(30_000);
    const { bridgeConnections } = rig.worker.stats();
    assert.ok(bridgeConnections > 5 && bridgeConnections < 20, String(bridgeConnections));
    assert.equal((await rig.ask(identity)).status, 503);
    rig.bridge.beforeCommand = () => undefined;
    await rig.clock.advance(5000);
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("R-22: a gateway that is lost ends what it had open; the bridge is told that no caller gave up", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = () => undefined;
    const link = rig.gateway();
    openOperation(link, rig.head(identity), true);
    const { stream } = openOperation(link, rig.head(identity), true);
    await settle();
    stream.reset("cancelled");
    await settle();
    link.destroy(undefined);
    await settle();
    assert.deepEqual(
      rig.bridge.operations.map(({ reset }) => reset),
      ["transport", "cancelled"],
    );
    assert.equal(rig.worker.stats().openStreams, 0);
  });
});

describe("closing", () => {
  test("leaves the executions running for the next daemon, or stops them all; streams hear why", async () => {
    for (const [how, left] of [
      ["leave", 1],
      ["stopAll", 0],
    ] as const) {
      const { rig, identity } = await running();
      const open = await openProcess(rig, identity);
      await rig.worker.close(how);
      await settle();
      assert.equal(open.reset(), "closing");
      assert.equal(rig.machine.processes.size, left);
      assert.equal(rig.daemon.store.allActivations().length, left);
    }
  });
});
