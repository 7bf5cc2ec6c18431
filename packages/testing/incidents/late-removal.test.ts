// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Every removal is "remove X if it is still at identity Y": a late one finds the newer in its place and leaves it there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ControlRig } from "../src/control-rig.ts";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { WorkerRig } from "../src/worker-rig.ts";

test("incident 1: a retirement that comes late ends nothing of the execution that is installed by then", async () => {
  const rig = new WorkerRig();
  await rig.boot();
  const first = rig.identity();
  await rig.run(first);
  const retirement = rig.authority.retirement(first);
  const second = rig.identity({ sandboxId: first.sandboxId, generation: 2 });
  await rig.run(second);
  let acknowledged = 0;
  for (const keepFrozen of [null, null]) {
    await rig.worker.control.retire(retirement, keepFrozen);
    acknowledged += 1;
  }
  faultLanded("the retirement of the first came after the second was installed", acknowledged);
  assert.deepEqual(rig.worker.inventory().installed, [second]);
  assert.equal(rig.disk.records.get(first.sandboxId)?.state, "installed");
  assert.deepEqual([...rig.machine.processes.keys()], [second.activation.id]);
  assert.equal((await rig.ask(second)).status, 200);
});

test("incident 1: the report of an end that comes late does not lose the execution that runs by then", async (context) => {
  const { rig, workers } = await ControlRig.open(context, { workers: 0 });
  const { presence } = await rig.attach(workers[0]);
  const { sandboxId } = await rig.create();
  const first = (await rig.record(sandboxId)).execution.identity;
  await rig.service.pause(rig.caller, sandboxId, false);
  await rig.connect(sandboxId);
  let taken = 0;
  await presence.report({ identity: first, what: "exited", reason: "killed" }).then(() => {
    taken += 1;
  });
  faultLanded("the end of the first was reported, and taken, while the second ran", taken);
  const record = await rig.record(sandboxId);
  assert.deepEqual([record.state, record.execution.identity.generation], ["running", 2n]);
  assert.deepEqual(workers[0].serving(sandboxId), record.execution.identity);
});

test("incident 1: the end of an older link that comes late does not remove the newer one", async (context) => {
  const { rig, workers } = await ControlRig.open(context, { workers: 0 });
  const older = await rig.attach(workers[0]);
  const connected = await rig.attach(workers[0]);
  const { sandboxId } = await rig.create({ timeoutMs: 3_600_000 });
  older.detach();
  const ends = rig.audit.of("worker/connected").length - 1;
  faultLanded("there was a newer link when the older one ended", ends);
  assert.deepEqual(rig.audit.of("worker/disconnected"), [], "the worker is not away for it");
  assert.equal(rig.control.workers().length, 1);
  await rig.service.pause(rig.caller, sandboxId, true);
  assert.equal(
    (await rig.connect(sandboxId)).state,
    "running",
    "commands and the feed go over the newer one",
  );
  connected.detach();
  assert.equal(rig.control.workers().length, 0, "whose own end is one");
});

test("incident 1: a rejection of the old route that comes late does not evict the route of the new execution", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const [early, late] = [rig.fetch("/files?path=a"), rig.fetch("/files?path=a")];
  const first = await rig.worker.operation(0);
  const second = await rig.worker.operation(1);
  rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
  rig.worker.serve = ({ head }) => {
    rig.worker.operations.at(-1)?.admit(200, [], head.capability);
  };
  first.refreshRoute(fakeIdentity(1n));
  assert.equal((await early).body, "cap 1 2");
  second.refreshRoute(fakeIdentity(1n));
  assert.equal((await late).body, "cap 1 2", "it is served by the newer entry, as it is");
  faultLanded("a second rejection of the old route came after its repair", rig.gateway.counts.refreshes - 1);
  assert.equal((await rig.fetch("/files?path=a")).body, "cap 1 2");
  assert.equal(rig.routes.requests.length, 2, "nothing was looked up again");
});
