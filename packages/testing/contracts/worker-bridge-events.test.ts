// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BridgeEvent } from "@space/model";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

const refused = (pid: number, times: number): BridgeEvent => ({
  name: "bridge/daemon-refused",
  fields: { problem: `uid ${pid}`, times },
});

describe("what the bridge tells", () => {
  test("comes into the worker's audit log under its own names, each report once", async () => {
    const rig = new WorkerRig();
    await rig.boot();
    rig.bridge.report(refused(1, 1), refused(2, 40));
    await settle();
    rig.bridge.dropLinks();
    await rig.clock.advance(5_000);
    rig.bridge.report(refused(3, 1));
    await rig.clock.advance(5_000);
    assert.deepEqual(
      rig.audit.of("bridge/daemon-refused").map(({ problem, times }) => [problem, times]),
      [
        ["uid 1", 1],
        ["uid 2", 40],
        ["uid 3", 1],
      ],
    );
    assert.deepEqual(rig.audit.of("bridge/connected"), [
      { known: 0, adopted: 0 },
      { known: 0, adopted: 0 },
    ]);
  });

  test("is taken no faster than every four seconds, whatever the bridge has to say", async () => {
    const rig = new WorkerRig();
    await rig.boot();
    for (let report = 0; report < 100; report += 1) rig.bridge.report(refused(report, 1));
    await rig.clock.advance(20_000);
    const taken = rig.audit.of("bridge/daemon-refused").length;
    assert.ok(taken >= 5 && taken <= 6, `${taken} reports in 20 s`);
  });

  test("is waited for as long as nothing happens", async () => {
    const rig = new WorkerRig();
    await rig.boot();
    for (let hour = 0; hour < 2; hour += 1) await rig.clock.advance(3_600_000);
    rig.bridge.report(refused(1, 1));
    await settle();
    assert.equal(rig.audit.of("bridge/daemon-refused").length, 1);
  });

  test("is not heard any more when it is not of its form, until the next connection", async () => {
    const rig = new WorkerRig();
    await rig.boot();
    rig.bridge.report({ name: "sandbox/changed", fields: { times: 1 } } as never);
    await settle();
    assert.deepEqual(
      rig.audit.of("bridge/misbehaved").map(({ code }) => code),
      ["input/invalid"],
    );
    assert.deepEqual(rig.audit.of("sandbox/changed"), []);
    rig.bridge.reports.splice(0);
    rig.bridge.report(refused(1, 1));
    await settle();
    assert.equal(rig.audit.of("bridge/daemon-refused").length, 0);
    rig.bridge.dropLinks();
    await rig.clock.advance(1_000);
    assert.equal(rig.audit.of("bridge/daemon-refused").length, 1);
  });
});
