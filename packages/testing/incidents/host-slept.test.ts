// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// After its host has slept, a process finds its timers late, its monotonic clock unmoved and the wall clock far ahead.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { settle, type VirtualClock } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

const minute = 60_000;

/** The host sleeps: true time passes, and none of it on the monotonic clock. Returns how much that was. */
function sleep(clock: VirtualClock, ms: number): number {
  const before = [clock.bootMs(), clock.monotonicMs(), clock.wallMs()] as const;
  clock.sleep(ms);
  assert.equal(clock.wallMs() - before[2], ms);
  return clock.bootMs() - before[0] - (clock.monotonicMs() - before[1]);
}

test("incident 15: a worker that slept honours no old token, and none at all until it has a lease again", async () => {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const { capability } = rig.head(identity);
  assert.equal((await rig.ask(identity, { capability })).status, 200, "its bytes are remembered (R-11)");
  const forwarded = rig.bridge.operations.length;
  rig.grantsLeases = false;
  faultLanded("the worker's host slept", sleep(rig.clock, 10 * minute));
  const old = await rig.ask(identity, { capability });
  const fresh = await rig.ask(identity);
  assert.deepEqual([old.status, fresh.status], [403, 421], "the old one has expired, and the lease with it");
  assert.equal(rig.audit.of("admission/refreshed").at(-1)?.reason, "no-lease");
  rig.grantsLeases = true;
  await rig.clock.advance(minute);
  assert.deepEqual(
    [(await rig.ask(identity, { capability })).status, (await rig.ask(identity)).status],
    [403, 200],
  );
  assert.equal(rig.bridge.operations.length, forwarded + 1, "only the fresh one under the new lease");
});

test("incident 15: a gateway that slept uses no authorisation and no capability from before", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  await rig.fetch("/files?path=a");
  assert.equal(rig.routes.requests.length, 1, "the entry is used");
  faultLanded("the gateway's host slept", sleep(rig.clock, 61_000));
  rig.routes.answer = () => ({ kind: "unauthenticated", problem: "wrong" });
  assert.equal((await rig.fetch("/files?path=a")).status, 401, "its key was revoked meanwhile (R-25)");
  assert.equal(rig.worker.operations.length, 2);
  rig.routes.answer = undefined;
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
  assert.deepEqual(
    rig.worker.operations.map(({ head }) => head.capability.split(" ")[1]),
    ["0", "0", "2"],
  );
});

test("incident 15: a control plane that slept gives nothing up for it, neither what ran nor what is new", async (context) => {
  const { rig, workers } = await ControlRig.open(context, { workers: 0 });
  const { presence } = await rig.attach(workers[0]);
  const before = await rig.create({ timeoutMs: 60 * minute });
  faultLanded("the control plane's host slept", sleep(rig.clock, 10 * minute));
  const after = await rig.create({ timeoutMs: 5 * minute });
  await rig.clock.advance(30_000); // every task of the upkeep has had its turn
  for (const { sandboxId } of [before, after]) {
    assert.equal((await rig.record(sandboxId)).state, "running");
    assert.ok(workers[0].serving(sandboxId));
  }
  assert.deepEqual(await workers[0].renew(presence), { kind: "granted" });
  await rig.clock.advance(4 * minute);
  await settle();
  assert.equal((await rig.record(after.sandboxId)).endAtMs, after.endAtMs);
  assert.equal(
    (await rig.record(before.sandboxId)).reason,
    "its worker's lease ran out",
    "and it is not for ever",
  );
});
