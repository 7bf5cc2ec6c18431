// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { describe, test } from "node:test";
import { type ExecutionIdentity, SpaceError, type WorkerHello, type WorkerReport } from "@space/model";
import {
  callRpc,
  decodeJson,
  FrameLink,
  receiverFeedOver,
  rpcMethod,
  serveRpc,
  workerControlClient,
  workerPresenceHandlers,
} from "@space/wire";
import { faultLanded } from "../src/fault-landed.ts";
import { testTenantKey } from "../src/sealed-objects.ts";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

async function running(): Promise<{ rig: WorkerRig; identity: ExecutionIdentity }> {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const process = rig.machine.processes.get(identity.activation.id) ?? assert.fail("it runs");
  process.memory = "still here";
  return { rig, identity };
}

/** The control plane's end of a worker's link. */
class FakeControlPlane {
  readonly hellos: WorkerHello[] = [];
  readonly reports: WorkerReport[] = [];
  bundle: string | null = null;
  onReport: () => void = () => undefined;
  #link: FrameLink | undefined;

  /** A new connection's worker end. */
  accept(): ReturnType<typeof duplexPair>[0] {
    const [near, far] = duplexPair();
    const handlers = workerPresenceHandlers({
      hello: async (hello) => {
        this.hellos.push(hello);
        return { bundle: this.bundle };
      },
      report: async (report) => {
        this.onReport();
        this.reports.push(report);
      },
      renew: async () => ({ kind: "withheld", retryMs: 1000 }),
    });
    this.#link = new FrameLink(far, {
      dialled: false,
      onOpen: (stream, head) => {
        const value = decodeJson(head.toString()) as { params: unknown };
        return serveRpc(stream, { rpc: rpcMethod(value) ?? "", params: value.params }, handlers);
      },
    });
    return near;
  }

  get link(): FrameLink {
    return this.#link ?? assert.fail("not connected");
  }
}

const endpoint = { host: "127.0.0.1", port: 4000 };

describe("a daemon that starts again", () => {
  test("incident 21: after kill -9 of the daemon the same processes answer, under the same identity and capability", async () => {
    const { rig, identity } = await running();
    const { capability } = rig.head(identity);
    await rig.reboot();
    const answer = await rig.ask(identity, { capability });
    assert.equal(answer.status, 200);
    assert.match(answer.body, /still here/);
    assert.deepEqual(rig.worker.inventory().installed, [identity]);
    faultLanded("another daemon took the execution over", rig.audit.of("execution/readopted").length);
    assert.equal(
      rig.bridge.calls.filter((call) => call === "adopt").length,
      1,
      "the bridge knew it all the time",
    );
    const { manifest } = await rig.snapshot(identity);
    assert.deepEqual(manifest.identity, identity, "its key has survived");
  });

  test("a bridge that ended too is told everything again", async () => {
    const { rig, identity } = await running();
    rig.bridge.restart();
    await rig.reboot();
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("R-19: a process whose evidence differs is not the recorded one: ended, reported, never forwarded to", async () => {
    const changes: readonly ((rig: WorkerRig, id: ExecutionIdentity["activation"]["id"]) => void)[] = [
      (rig, id) => alter(rig, id, { socketInode: "9" }),
      (rig, id) => alter(rig, id, { hostBootId: "another boot" }),
      (rig, id) => alter(rig, id, { cgroup: "/elsewhere" }),
      (rig) => rig.machine.reboot(),
    ];
    for (const change of changes) {
      const { rig, identity } = await running();
      change(rig, identity.activation.id);
      await rig.reboot();
      assert.equal((await rig.ask(identity)).status, 421);
      assert.equal(rig.machine.processes.size, 0);
      assert.deepEqual(rig.worker.inventory().installed, []);
      assert.equal(
        rig.disk.records.get(identity.sandboxId)?.state,
        "installed",
        "only a retirement changes it",
      );
      const plane = new FakeControlPlane();
      void rig.worker.serveControlPlane(plane.accept(), endpoint);
      await settle();
      assert.deepEqual(plane.reports, [{ identity, what: "exited", reason: "gone at start" }]);
    }
  });

  test("leftovers of starts and of retirements that a crash cut short are swept", async () => {
    const { rig, identity } = await running();
    const started = rig.identity();
    rig.daemon.store.beforeWrite = (what) => {
      if (what.startsWith("activation")) throw new SpaceError("store/failed", { step: what });
    };
    rig.daemon.substrate.beforeStep = (step) => {
      if (step === "stop") throw new SpaceError("substrate/failed", { step });
    };
    await assert.rejects(rig.worker.control.activate(rig.request(started)));
    await assert.rejects(rig.worker.control.retire(rig.authority.retirement(identity), null));
    assert.equal(rig.machine.processes.size, 2);
    assert.equal(rig.disk.records.get(identity.sandboxId)?.state, "retired");
    await rig.reboot();
    assert.equal(rig.machine.processes.size, 0);
    assert.equal(rig.disk.activations.size, 0);
    assert.equal(rig.bridge.served.size, 0);
  });

  test("a pause goes on: not admitting, frozen, and aborted or retired by whoever asks next", async () => {
    const { rig, identity } = await running();
    const { signed } = await rig.snapshot(identity);
    await rig.reboot();
    assert.equal((await rig.ask(identity)).status, 421);
    assert.equal((await rig.snapshot(identity)).signed, signed);
    const [process] = rig.machine.processes.values();
    assert.equal(process?.state, "frozen");
    await rig.worker.control.abortPause(identity);
    assert.match((await rig.ask(identity)).body, /still here/);
  });

  test("a process kept frozen stays so, also when a crash had it thawed; it goes on with its memory", async () => {
    const { rig, identity } = await running();
    const from = await rig.pause(identity, true);
    const process = rig.machine.processes.get(identity.activation.id) ?? assert.fail("kept");
    process.state = "running";
    rig.bridge.restart();
    await rig.reboot();
    assert.equal(process.state, "frozen");
    const next = rig.identity({ sandboxId: identity.sandboxId, generation: 2 });
    await rig.run(next, { from });
    assert.match((await rig.ask(next)).body, /still here/);
    await rig.reboot();
    assert.match((await rig.ask(next)).body, /still here/, "also after another restart");
  });

  test("a start whose driver or bridge cannot be reached fails, and the next one goes on", async () => {
    const { rig, identity } = await running();
    rig.kill();
    rig.bridge.beforeCommand = () => {
      throw new SpaceError("endpoint/unverifiable", { problem: "planted" });
    };
    await assert.rejects(rig.boot(), { code: "endpoint/unverifiable" });
    rig.bridge.beforeCommand = () => undefined;
    await rig.boot();
    assert.equal((await rig.ask(identity)).status, 200);
  });
});

function alter(
  rig: WorkerRig,
  id: ExecutionIdentity["activation"]["id"],
  changes: { socketInode?: string; hostBootId?: string; cgroup?: string },
): void {
  const process = rig.machine.processes.get(id) ?? assert.fail("it runs");
  process.evidence = { ...process.evidence, ...changes };
}

/** The commands of a sandbox's life, each of which must survive a crash at any of its writes. */
const life: readonly [string, (rig: WorkerRig, identity: ExecutionIdentity) => Promise<unknown>][] = [
  ["activate and install", (rig, identity) => rig.run(identity)],
  ["pause", (rig, identity) => rig.snapshot(identity)],
  ["abort", (rig, identity) => rig.worker.control.abortPause(identity)],
  ["pause again, keeping memory", (rig, identity) => rig.pause(identity, true)],
  [
    "resume with memory",
    async (rig, identity) => {
      const next = rig.identity({ sandboxId: identity.sandboxId, generation: 2 });
      const frozen = rig.worker.inventory().frozen[0];
      const [stored] = [...rig.disk.activations.values()];
      if (frozen === undefined || stored === undefined) return;
      const signed = stored.manifest ?? assert.fail("a kept process has its manifest");
      const payload = JSON.parse(Buffer.from(signed.split(".")[1] ?? "", "base64url").toString());
      const { sbx: _sbx, iat, ...rest } = payload;
      const manifest = { ...rest, identity: stored.identity, createdAtSeconds: iat };
      const from = { ...rig.sourceOf({ manifest, signed }), memory: "frozen-on-worker" as const };
      await rig.run(next, { from });
    },
  ],
];

describe("a crash between any two steps", () => {
  test("leaves a state from which the repetition, or the next command, goes on; never two incarnations", async () => {
    let crashes = 0;
    for (let at = 0; at < life.length; at += 1) {
      for (let write = 1; ; write += 1) {
        const rig = new WorkerRig(`crash ${at} ${write}`);
        await rig.boot();
        const identity = rig.identity();
        for (const [, command] of life.slice(0, at)) await command(rig, identity);
        const [name, command] = life[at] ?? assert.fail("there is one");
        let writes = 0;
        rig.daemon.store.beforeWrite = () => {
          writes += 1;
          if (writes >= write) throw new SpaceError("store/failed", { step: "crash" });
        };
        const crashed = await command(rig, identity).then(
          () => false,
          () => true,
        );
        if (!crashed) break;
        crashes += 1;
        const where = `${name}, write ${write}`;
        assert.ok(rig.machine.processes.size <= 1, where);
        await rig.reboot();
        await assertConsistent(rig, where);
        await repeat(rig, identity, at, where);
      }
    }
    assert.ok(crashes >= 10, `the fault was planted ${crashes} times`);
  });
});

async function assertConsistent(rig: WorkerRig, where: string): Promise<void> {
  const held = [...rig.disk.activations.values()];
  assert.deepEqual(
    new Set(held.map(({ startedAs }) => startedAs)),
    new Set(rig.machine.processes.keys()),
    `${where}: every process is remembered, and nothing else`,
  );
  for (const { startedAs, phase } of held) {
    const state = rig.machine.processes.get(startedAs)?.state;
    if (phase === "frozen" || phase === "snapshotted" || phase === "kept")
      assert.equal(state, "frozen", where);
  }
}

/** What a control plane does after a failure: the same command again, or the sandbox's end. */
async function repeat(rig: WorkerRig, identity: ExecutionIdentity, at: number, where: string): Promise<void> {
  const [, command] = life[at] ?? assert.fail("there is one");
  if (at === 0) await command(rig, rig.disk.activations.size > 0 ? identity : rig.identity());
  else if (rig.disk.records.get(identity.sandboxId)?.state === "installed") {
    await rig.worker.control.abortPause(identity);
    assert.equal((await rig.ask(identity)).status, 200, where);
    if (at < 3) return;
    await rig.pause(identity, true);
  }
  for (const { identity: held } of rig.disk.activations.values()) {
    await rig.worker.control.retire(rig.authority.retirement(held), null);
  }
  assert.equal(rig.machine.processes.size, 0, `${where}: nothing is left behind`);
  assert.equal(rig.bridge.served.size, 0, where);
}

describe("the link to the control plane", () => {
  test("hello says who, where, what runs and how much fits; the commands come over the same link", async () => {
    const { rig, identity } = await running();
    const plane = new FakeControlPlane();
    const served = rig.worker.serveControlPlane(plane.accept(), endpoint);
    await settle();
    assert.deepEqual(plane.hellos, [
      {
        workerId: rig.workerId,
        substrate: "namespace",
        capacity: 8,
        freeSlots: 7,
        endpoint,
        inventory: { installed: [identity], frozen: [] },
        bundleVersion: 1,
        feedPosition: 0,
        store: { held: null, next: rig.disk.succession.held },
      },
    ]);
    const control = workerControlClient(plane.link, rig.clock, rig.workerId);
    const { manifest } = await control.snapshot(
      identity,
      await rig.chains.seal(identity.sandboxId),
      testTenantKey,
    );
    assert.deepEqual(manifest.identity, identity);
    await control.abortPause(identity);
    assert.deepEqual(await control.inventory(), { installed: [identity], frozen: [] });
    const feed = receiverFeedOver(plane.link);
    const forged = { kind: "install", certificate: "a.b.c" } as const;
    await assert.rejects(feed.tell({ position: null, entry: forged }), { code: "certificate/refused" });
    plane.link.destroy(undefined);
    await served;
  });

  test("R-10: newer keys come with the welcome; an older bundle ends the link", async () => {
    const { rig } = await running();
    const plane = new FakeControlPlane();
    plane.bundle = rig.authority.bundle(7);
    void rig.worker.serveControlPlane(plane.accept(), endpoint);
    await settle();
    assert.equal(rig.worker.stats().bundleVersion, 7);
    plane.bundle = rig.authority.bundle(6);
    await assert.rejects(rig.worker.serveControlPlane(plane.accept(), endpoint), { code: "bundle/rollback" });
    await settle();
    assert.equal(plane.link.closed, true);
    assert.deepEqual(rig.audit.of("keys/replaced").at(-1), { version: 7 });
    assert.deepEqual(
      rig.audit.of("keys/refused").map(({ held, code }) => [held, code]),
      [[7, "bundle/rollback"]],
    );
  });

  test("an execution that ends is reported until the control plane has it", async () => {
    const { rig, identity } = await running();
    const plane = new FakeControlPlane();
    rig.machine.end(identity.activation.id, "killed");
    let refusals = 0;
    plane.onReport = () => {
      refusals += 1;
      if (refusals === 1) throw new SpaceError("store/failed", { step: "planted" });
    };
    void rig.worker.serveControlPlane(plane.accept(), endpoint);
    await settle();
    assert.deepEqual(plane.reports, []);
    assert.deepEqual(plane.hellos[0]?.inventory.installed, []);
    await rig.clock.advance(5000);
    await settle();
    assert.deepEqual(plane.reports, [{ identity, what: "exited", reason: "killed" }]);
    await rig.clock.advance(60_000);
    assert.equal(plane.reports.length, 1, "once it is acknowledged, no more");
  });

  test("what is not a command ends the link", async () => {
    const { rig } = await running();
    const plane = new FakeControlPlane();
    const served = rig.worker.serveControlPlane(plane.accept(), endpoint);
    await settle();
    await assert.rejects(callRpc(plane.link, rig.clock, { method: "worker/unknown", params: null }), {
      code: "link/protocol",
    });
    plane.link.open(
      "{}",
      { onData: () => undefined, onEnd: () => undefined, onReset: () => undefined },
      true,
    );
    await served;
  });
});
