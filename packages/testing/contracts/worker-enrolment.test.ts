// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A worker's identity is bound to its store: with real workers behind links, and copies of their disks.

import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import type { MemoryDisk } from "../src/memory-worker-store.ts";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

const endpoint = { host: "127.0.0.1", port: 7000 };
const turns = 400;

/** The daemon starts on this disk and dials. Resolves with the failure, or undefined while it is connected. */
async function connect(rig: ControlRig, side: WorkerRig): Promise<unknown> {
  side.disk.bundle ??= { version: 1, token: await rig.bundle() };
  await side.boot({ worker: { rootPublicKey: rig.root.publicKey } });
  return dial(rig, side);
}

const sockets = new Map<WorkerRig, Duplex>();

async function dial(rig: ControlRig, side: WorkerRig): Promise<unknown> {
  const [near, far] = duplexPair();
  sockets.set(side, near);
  rig.control.accept(far, side.workerId);
  let failure: unknown;
  void side.worker.serveControlPlane(near, endpoint).catch((error: unknown) => {
    failure = error;
  });
  await settle(turns);
  return failure;
}

/** Two rigs of one name draw the same numbers: this one goes ahead. */
function ownChance({ random }: WorkerRig): void {
  for (let draw = 0; draw < 50; draw += 1) random.bytes(16);
}

/** The host is put back to what its disk held once: nothing of what runs now is on it. */
function putBack(side: WorkerRig, disk: MemoryDisk): void {
  side.kill();
  sockets.get(side)?.destroy();
  side.disk = disk.copy();
}

test("a worker that is given an old copy of its own disk is refused, however often it dials, and serves nobody", async (context) => {
  const { rig } = await ControlRig.open(context, { workers: 0 });
  const side = new WorkerRig("one");
  assert.equal(await connect(rig, side), undefined);
  const old = side.disk.copy();
  await side.reboot({ worker: { rootPublicKey: rig.root.publicKey } });
  assert.equal(await dial(rig, side), undefined, "an ordinary restart");
  assert.equal(rig.control.workers().length, 1);

  putBack(side, old);
  const failure = await connect(rig, side);
  assert.ok(isSpaceError(failure, "worker/superseded"), String(failure));
  assert.equal(failure.details.workerId, side.workerId);
  for (let round = 0; round < 3; round += 1)
    assert.ok(isSpaceError(await dial(rig, side), "worker/superseded"));
  assert.deepEqual(rig.control.workers(), []);
  const gateway = side.gateway();
  await settle();
  assert.equal(gateway.closed, true, "no gateway is let in");
  assert.ok(rig.audit.of("worker/refused").length >= 4);
});

test("of a worker and its clone the one that dials first goes on, and the other is refused for ever", async (context) => {
  const { rig } = await ControlRig.open(context, { workers: 0 });
  const side = new WorkerRig("one");
  await connect(rig, side);
  const clone = new WorkerRig("one");
  assert.equal(clone.workerId, side.workerId);
  ownChance(clone);
  clone.disk = side.disk.copy();
  assert.equal(await connect(rig, clone), undefined, "nobody can tell yet");
  assert.ok(isSpaceError(await dial(rig, side), "worker/superseded"));
  clone.kill();
  assert.equal(await connect(rig, clone), undefined);
});

test("after a restart of the control plane the same store is known, and an old copy still refused", async (context) => {
  const { rig } = await ControlRig.open(context, { workers: 0 });
  const side = new WorkerRig("one");
  await connect(rig, side);
  const old = side.disk.copy();
  rig.crash();
  await rig.start();
  assert.equal(await dial(rig, side), undefined);
  putBack(side, old);
  assert.ok(isSpaceError(await connect(rig, side), "worker/superseded"));
});

test("a hello whose answer was lost, or whose end was not written, is said again and taken", async (context) => {
  const { rig } = await ControlRig.open(context, { workers: 0 });
  const side = new WorkerRig("one");
  side.disk.bundle = { version: 1, token: await rig.bundle() };
  let failing = true;
  await side.boot({
    worker: { rootPublicKey: rig.root.publicKey },
    prepare: ({ store }) => {
      let successions = 0;
      store.beforeWrite = (what) => {
        if (what === "succession") successions += 1;
        if (failing && what === "succession" && successions % 2 === 0)
          throw new TypeError("the power is cut");
      };
    },
  });
  assert.ok((await dial(rig, side)) instanceof TypeError, "the fault landed after the control plane took it");
  assert.ok((await dial(rig, side)) instanceof TypeError);
  failing = false;
  assert.equal(await dial(rig, side), undefined);
  assert.equal(await dial(rig, side), undefined);
});

test("a lost store is another worker", async (context) => {
  const { rig } = await ControlRig.open(context, { workers: 0 });
  await connect(rig, new WorkerRig("one"));
  const lost = new WorkerRig("one"); // the name of the old certificate, and an empty store
  ownChance(lost);
  assert.ok(isSpaceError(await connect(rig, lost), "worker/superseded"));
  assert.equal(await connect(rig, new WorkerRig("another")), undefined, "enrolled anew");
});
