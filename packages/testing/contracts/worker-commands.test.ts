// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newSigningKey, publicKeyText } from "@space/capability";
import { type ExecutionIdentity, freezeIdentity, parseDigest, parseWorkerId, SpaceError } from "@space/model";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

async function booted(): Promise<WorkerRig> {
  const rig = new WorkerRig();
  await rig.boot();
  return rig;
}

const otherKey = publicKeyText(newSigningKey().publicKey);
const code = (expected: string) => ({ code: expected });

describe("activate", () => {
  test("R-5: makes a key pair here, gives out its public half, and serves nobody before the install", async () => {
    const rig = await booted();
    const [a, b] = [rig.identity(), rig.identity()];
    const first = await rig.worker.control.activate(rig.request(a));
    const second = await rig.worker.control.activate(rig.request(b));
    assert.notEqual(first.publicKey, second.publicKey);
    assert.equal(first.memory, false);
    assert.equal((await rig.ask(a)).status, 421);
    assert.deepEqual(rig.worker.inventory(), { installed: [], frozen: [] });
    const held = rig.daemon.store.readActivation(a.activation.id);
    assert.ok(held?.privateKey.reveal().includes("PRIVATE KEY"));
    assert.ok(
      !JSON.stringify(rig.audit.events, (_name, value) => (typeof value === "bigint" ? "" : value)).includes(
        "PRIVATE",
      ),
    );
  });

  test("is safe to repeat, at the same time too: one process, one key", async () => {
    const rig = await booted();
    const request = rig.request(rig.identity());
    const answers = await Promise.all([1, 2, 3].map(() => rig.worker.control.activate(request)));
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
    assert.equal(rig.machine.processes.size, 1);
    assert.equal(rig.daemon.substrate.calls.filter((step) => step === "start").length, 1);
  });

  test("R-3: another attempt of the same process has the same key", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const first = await rig.worker.control.activate(rig.request(identity));
    const next = freezeIdentity({ ...identity, activation: { ...identity.activation, attempt: 2 } });
    assert.deepEqual(await rig.worker.control.activate(rig.request(next)), first);
    await rig.worker.control.install(rig.authority.certificate({ identity: next, ...first }));
    assert.equal((await rig.ask(next)).status, 200);
  });

  test("R-1: a generation that was ever started or installed is not started again", async () => {
    const rig = await booted();
    const old = rig.identity({ generation: 2 });
    await rig.run(old);
    const twin = rig.identity({ sandboxId: old.sandboxId, generation: 2 });
    await assert.rejects(rig.worker.control.activate(rig.request(twin)), code("record/conflict"));
    const older = rig.identity({ sandboxId: old.sandboxId, generation: 1 });
    await assert.rejects(rig.worker.control.activate(rig.request(older)), code("record/stale"));
    await rig.worker.control.retire(rig.authority.retirement(old), null);
    await assert.rejects(rig.worker.control.activate(rig.request(old)), code("record/conflict"));
    assert.equal(rig.machine.processes.size, 0);
  });

  test("a start that was given up is ended by the next generation's", async () => {
    const rig = await booted();
    const abandoned = rig.identity();
    await rig.worker.control.activate(rig.request(abandoned));
    const next = rig.identity({ sandboxId: abandoned.sandboxId, generation: 2 });
    await rig.run(next);
    assert.deepEqual([...rig.machine.processes.keys()], [next.activation.id]);
  });

  test("an identity of another worker or substrate is refused", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const workerId = parseWorkerId(`wrk_${"z".repeat(16)}`);
    for (const placement of [
      { workerId, substrate: "namespace" },
      { workerId: rig.workerId, substrate: "qemu" },
      { workerId: rig.workerId, substrate: "namespace", podUid: "p" },
    ] as const) {
      const elsewhere = freezeIdentity({ ...identity, placement });
      await assert.rejects(rig.worker.control.activate(rig.request(elsewhere)), code("input/invalid"));
    }
  });

  test("no more than the capacity; a place is free again after a retirement", async () => {
    const rig = new WorkerRig();
    await rig.boot({ worker: { capacity: 1 } });
    const identity = rig.identity();
    await rig.run(identity);
    await assert.rejects(rig.worker.control.activate(rig.request(rig.identity())), code("worker/none-free"));
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    await rig.run(rig.identity());
  });

  test("whatever fails leaves nothing behind", async () => {
    const rig = await booted();
    const fail = (): never => {
      throw new SpaceError("substrate/failed", { step: "planted" });
    };
    const planted: readonly [string, () => void, () => void][] = [
      [
        "the driver",
        () => {
          rig.daemon.substrate.beforeStep = (step) => (step === "start" ? fail() : undefined);
        },
        () => {
          rig.daemon.substrate.beforeStep = () => undefined;
        },
      ],
      [
        "the bridge",
        () => {
          rig.bridge.beforeCommand = (command) => (command === "adopt" ? fail() : undefined);
        },
        () => {
          rig.bridge.beforeCommand = () => undefined;
        },
      ],
      [
        "the store",
        () => {
          rig.daemon.store.beforeWrite = (what) => what === "activation-running" && fail();
        },
        () => {
          rig.daemon.store.beforeWrite = () => undefined;
        },
      ],
      [
        "the process, in the meantime",
        () => {
          rig.bridge.beforeCommand = (command) => {
            const [id] = rig.machine.processes.keys();
            if (command === "adopt" && id !== undefined) rig.machine.end(id, "planted");
          };
        },
        () => {
          rig.bridge.beforeCommand = () => undefined;
        },
      ],
    ];
    const request = rig.request(rig.identity());
    for (const [what, plant, clear] of planted) {
      plant();
      await assert.rejects(rig.worker.control.activate(request), SpaceError, what);
      clear();
      assert.equal(rig.machine.processes.size, 0, what);
      assert.equal(rig.bridge.served.size, 0, what);
      assert.equal(rig.worker.stats().executions, 0, what);
    }
    await rig.worker.control.activate(request);
    assert.equal(rig.machine.processes.size, 1, "the same request succeeds afterwards");
  });
});

describe("R-12: install", () => {
  test("is durable before it is acknowledged, and safe to repeat", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const certificate = await rig.run(identity);
    const record = rig.disk.records.get(identity.sandboxId);
    assert.equal(record?.certificate, certificate);
    assert.equal(record?.epoch, 1n);
    rig.daemon.store.beforeWrite = () => assert.fail("nothing is written again");
    await rig.worker.control.install(certificate);
    assert.equal(rig.disk.records.get(identity.sandboxId), record);
    assert.deepEqual(rig.worker.inventory().installed, [identity]);
  });

  test("the same facts signed again are the same; other facts for one identity conflict", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const { publicKey } = await rig.worker.control.activate(rig.request(identity));
    const early = rig.authority.certificate({ identity, publicKey, issuedAtSeconds: 100 });
    const late = rig.authority.certificate({ identity, publicKey, issuedAtSeconds: 200 });
    await rig.worker.control.install(early);
    await rig.worker.control.install(late);
    await rig.worker.control.install(early);
    assert.equal(rig.disk.records.get(identity.sandboxId)?.certificate, late);
    assert.equal(rig.disk.records.get(identity.sandboxId)?.epoch, 1n);
    await assert.rejects(
      rig.worker.control.install(rig.authority.certificate({ identity, publicKey: otherKey })),
      code("record/conflict"),
    );
  });

  test("R-5: only for a process that runs here with that key, begun from that snapshot", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const absent = rig.authority.certificate({ identity, publicKey: otherKey });
    await assert.rejects(rig.worker.control.install(absent), code("certificate/refused"));
    const { publicKey } = await rig.worker.control.activate(rig.request(identity));
    await assert.rejects(rig.worker.control.install(absent), code("certificate/refused"), "another key");
    const restoredFrom = "d".repeat(64) as never;
    const restored = rig.authority.certificate({ identity, publicKey, restoredFrom });
    await assert.rejects(rig.worker.control.install(restored), code("certificate/refused"));
    const gone = rig.authority.certificate({ identity, publicKey });
    rig.machine.end(identity.activation.id, "killed");
    await assert.rejects(
      rig.worker.control.install(gone),
      code("certificate/refused"),
      "the process has ended",
    );
    assert.equal(rig.disk.records.size, 0);
  });

  test("verified by the worker itself: a forged certificate, or one for another worker, is refused", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const { publicKey } = await rig.worker.control.activate(rig.request(identity));
    const forged = rig.authority.certificate({ identity, publicKey, key: newSigningKey() });
    await assert.rejects(rig.worker.control.install(forged), code("certificate/refused"));
    const elsewhere = freezeIdentity({
      ...identity,
      placement: { ...identity.placement, workerId: parseWorkerId(`wrk_${"z".repeat(16)}`) },
    });
    const misplaced = rig.authority.certificate({ identity: elsewhere, publicKey });
    await assert.rejects(rig.worker.control.install(misplaced), code("certificate/refused"));
    await assert.rejects(rig.worker.control.install("a.b.c"), code("certificate/refused"));
    assert.equal(rig.disk.records.size, 0);
  });

  test("a late install of an older generation or attempt never replaces a newer one", async () => {
    const rig = await booted();
    const first = rig.identity();
    const early = await rig.run(first);
    const again = freezeIdentity({ ...first, activation: { ...first.activation, attempt: 2 } });
    const { publicKey } = await rig.worker.control.activate(rig.request(again));
    await rig.worker.control.install(rig.authority.certificate({ identity: again, publicKey }));
    await assert.rejects(rig.worker.control.install(early), code("record/stale"), "a lower attempt");
    const next = rig.identity({ sandboxId: first.sandboxId, generation: 2 });
    await rig.run(next);
    await assert.rejects(rig.worker.control.install(early), code("record/stale"), "a lower generation");
    assert.deepEqual(rig.disk.records.get(first.sandboxId)?.identity, next);
    await rig.worker.control.retire(rig.authority.retirement(next), null);
    await assert.rejects(rig.worker.control.install(early), code("record/stale"), "a tombstone is as high");
  });

  test("one generation never names another process", async () => {
    const rig = await booted();
    const identity = rig.identity();
    await rig.run(identity);
    const twin = rig.identity({ sandboxId: identity.sandboxId });
    const certificate = rig.authority.certificate({ identity: twin, publicKey: otherKey });
    await assert.rejects(rig.worker.control.install(certificate), code("record/conflict"));
  });

  test("an older process that cannot be ended at once is ended by the repetition", async () => {
    const rig = await booted();
    const old = rig.identity();
    await rig.run(old);
    const next = rig.identity({ sandboxId: old.sandboxId, generation: 2 });
    rig.daemon.substrate.beforeStep = (step) => {
      if (step === "stop") throw new SpaceError("substrate/failed", { step });
    };
    await assert.rejects(rig.run(next), code("substrate/failed"));
    rig.daemon.substrate.beforeStep = () => undefined;
    await rig.run(next);
    assert.deepEqual([...rig.machine.processes.keys()], [next.activation.id]);
  });
});

describe("R-12: retire", () => {
  test("is durable before the processes end, and safe to repeat", async () => {
    const rig = await booted();
    const identity = rig.identity();
    await rig.run(identity);
    const order: string[] = [];
    rig.daemon.store.beforeWrite = (what) => order.push(what);
    rig.daemon.substrate.beforeStep = (step) => void order.push(step);
    const retirement = rig.authority.retirement(identity);
    await rig.worker.control.retire(retirement, null);
    assert.deepEqual(order, ["retire", "stop", "activation-removed"]);
    await rig.worker.control.retire(retirement, null);
    assert.equal(order.length, 3);
    assert.equal(rig.disk.records.get(identity.sandboxId)?.state, "retired");
    assert.equal(rig.bridge.served.size, 0);
  });

  test("a retirement of another identity than the installed one changes nothing", async () => {
    const rig = await booted();
    const identity = rig.identity({ generation: 2 });
    await rig.run(identity);
    const record = rig.disk.records.get(identity.sandboxId);
    const others: ExecutionIdentity[] = [
      rig.identity({ sandboxId: identity.sandboxId, generation: 1 }),
      rig.identity({ sandboxId: identity.sandboxId, generation: 2 }),
      rig.identity({ sandboxId: identity.sandboxId, generation: 3 }),
      freezeIdentity({ ...identity, activation: { ...identity.activation, attempt: 2 } }),
    ];
    for (const other of others) await rig.worker.control.retire(rig.authority.retirement(other), null);
    assert.equal(rig.disk.records.get(identity.sandboxId), record);
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("a late retirement of an older generation does not touch the newer one", async () => {
    const rig = await booted();
    const old = rig.identity();
    await rig.run(old);
    const late = rig.authority.retirement(old);
    const next = rig.identity({ sandboxId: old.sandboxId, generation: 2 });
    await rig.run(next);
    await rig.worker.control.retire(late, null);
    assert.equal((await rig.ask(next)).status, 200);
  });

  test("R-18: an attempt's retirement ends the process that it was re-driven for", async () => {
    const rig = await booted();
    const identity = rig.identity();
    await rig.run(identity);
    const next = freezeIdentity({ ...identity, activation: { ...identity.activation, attempt: 2 } });
    await rig.run(next);
    await rig.worker.control.retire(rig.authority.retirement(next), null);
    assert.equal(rig.machine.processes.size, 0);
  });

  test("an activation that was never installed ends, and its late install is refused", async () => {
    const rig = await booted();
    const identity = rig.identity();
    const { publicKey } = await rig.worker.control.activate(rig.request(identity));
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    assert.equal(rig.machine.processes.size, 0);
    const late = rig.authority.certificate({ identity, publicKey });
    await assert.rejects(rig.worker.control.install(late), code("certificate/refused"));
  });

  test("a forged retirement is refused", async () => {
    const rig = await booted();
    const identity = rig.identity();
    await rig.run(identity);
    const forged = rig.authority.retirement(identity, newSigningKey());
    await assert.rejects(rig.worker.control.retire(forged, null), code("certificate/refused"));
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("processes end also when the bridge cannot be told; it is told by the next connection", async () => {
    const rig = await booted();
    const identity = rig.identity();
    await rig.run(identity);
    rig.bridge.dropLinks();
    await settle();
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    assert.equal(rig.machine.processes.size, 0);
    assert.equal(rig.bridge.served.size, 1);
    await rig.clock.advance(100);
    assert.equal(rig.bridge.served.size, 0);
  });

  test("the oldest tombstones are forgotten beyond the limit, and a late install stays refused", async () => {
    const rig = new WorkerRig();
    await rig.boot({ worker: { limits: { retiredRecords: 1 } } });
    const certificates: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      const identity = rig.identity();
      certificates.push(await rig.run(identity));
      await rig.worker.control.retire(rig.authority.retirement(identity), null);
    }
    await rig.reboot({ worker: { limits: { retiredRecords: 1 } } });
    assert.equal(rig.disk.records.size, 1);
    for (const late of certificates) await assert.rejects(rig.worker.control.install(late), SpaceError);
  });
});

describe("commands of one sandbox", () => {
  test("run one after the other; a bounded number waits; others do not wait for them", async () => {
    const rig = new WorkerRig();
    await rig.boot({ worker: { limits: { waitingCommands: 2 } } });
    const identity = rig.identity();
    const gate = Promise.withResolvers<void>();
    rig.daemon.substrate.beforeStep = (step, id) =>
      step === "start" && id === identity.activation.id ? gate.promise : undefined;
    const { control } = rig.worker;
    const first = control.activate(rig.request(identity));
    const discard = (): Promise<void> => control.discard(identity.sandboxId, parseDigest("d".repeat(64)));
    const waiting = [discard(), discard()];
    await assert.rejects(discard(), code("worker/busy"));
    await rig.run(rig.identity());
    gate.resolve();
    await Promise.all([first, ...waiting]);
    await discard();
  });
});
