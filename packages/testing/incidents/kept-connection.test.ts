// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";
import { openOperation, WorkerRig } from "../src/worker-rig.ts";

test("R-21, incident 5: a port's kept connection is reset both ways, and is not a way into the next execution", async () => {
  let kept = 0;
  for (const protocol of ["tcp", "websocket", "http"] as const) {
    const rig = new WorkerRig();
    await rig.boot();
    const identity = rig.identity();
    await rig.run(identity);
    rig.bridge.onOperation = ({ stream }) => {
      stream.sendHead('{"status":200,"headers":[]}', false);
      stream.send(Buffer.from("first;"));
    };
    const target = { purpose: "service-port", port: 3000, protocol } as const;
    const capability = rig.authority.capability({ identity, presenter: rig.presenter, access: target });
    const head = rig.head(identity, { target, capability, path: "/" });
    const link = rig.gateway();
    const open = openOperation(link, head, false);
    await settle();
    open.stream.send(Buffer.from("before;"));
    await settle();
    const [old = assert.fail("it was forwarded")] = rig.bridge.operations;
    assert.equal(old.body, "before;");
    kept += rig.worker.stats().openStreams;
    const next = rig.identity({ sandboxId: identity.sandboxId, generation: 2 });
    await rig.run(next);
    open.stream.send(Buffer.from("after;"));
    old.stream.send(Buffer.from("late;"));
    await settle();
    assert.deepEqual([open.reset(), old.reset], ["epoch-ended", "epoch-ended"]);
    assert.deepEqual([open.body(), old.body], ["first;", "before;"]);
    // The gateway's link lives on; the old capability opens nothing over it, of any protocol.
    const again = await rig.send(link, { ...head, admission: rig.head(identity).admission });
    assert.equal(again.status, 421);
    assert.equal(rig.bridge.operations.length, 1);
  }
  faultLanded("a connection of each kind was kept open when the next execution came", kept - 2);
});
