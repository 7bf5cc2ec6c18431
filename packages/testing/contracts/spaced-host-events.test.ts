// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { describe, test } from "node:test";
import {
  type BridgeEvent,
  type BridgeReport,
  fencedLimitMs,
  isSpaceError,
  newActivationId,
  Secret,
  type SeenReport,
} from "@space/model";
import { daemon, HostRig } from "../src/host-rig.ts";

const named = (events: readonly BridgeEvent[]): readonly string[] =>
  events.map(({ name, fields }) => `${name} ${fields.times}`);

/** Somebody who is no daemon dials. */
function intrude(rig: HostRig, pid: number): void {
  const [near, far] = duplexPair();
  near.on("error", () => undefined);
  assert.throws(() => rig.host.serve(far, { ...daemon, uid: 1000, pid }), isSpaceError);
}

/** As the daemon does. */
async function follow({ control }: HostRig, told: BridgeEvent[]): Promise<void> {
  let seen: SeenReport | null = null;
  for (;;) {
    const report: BridgeReport = await control.takeReport(seen);
    seen = report;
    told.push(...report.events);
  }
}

describe("what the bridge has to tell for the audit log", () => {
  test("each thing is told once, and not again once it is acknowledged", async () => {
    const rig = await HostRig.adopted();
    const { activationId, sandboxId } = rig;
    await rig.call("GET", "/health", { activation: newActivationId(rig.random) });
    const to = newActivationId(rig.random);
    const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
    await rig.control.rekey({ from: activationId, to, activationSecret });
    await rig.control.release(to);
    const events = await rig.told();
    assert.deepEqual(named(events), [
      "bridge/daemon-accepted 1",
      "bridge/adopted 1",
      "bridge/operation-refused 1",
      "bridge/rekeyed 1",
      "bridge/released 1",
    ]);
    assert.deepEqual(events[1]?.fields, { activationId, sandboxId, times: 1 });
    assert.deepEqual(await rig.told(), []);
    rig.close();
  });

  test("R-16: the fence, what ended by it, and its end", async () => {
    const rig = await HostRig.adopted();
    await rig.told();
    await rig.control.holdUntil(rig.clock.bootMs() + 1_000);
    await rig.clock.advance(1_000);
    await rig.call("GET", "/health").catch(() => undefined);
    assert.deepEqual(named(await rig.told()), ["bridge/fenced 1", "bridge/operation-refused 1"]);
    await rig.clock.advance(fencedLimitMs);
    assert.deepEqual(named(await rig.told()), ["bridge/fence-given-up 1"]);
    await rig.control.holdUntil(rig.clock.bootMs() + 1_000);
    assert.deepEqual(named(await rig.told()).slice(0, 1), ["bridge/fence-lifted 1"]);
    rig.close();
  });

  test("a flood of one thing is one event in five seconds, with its count", async () => {
    const rig = new HostRig();
    await rig.told();
    const told: BridgeEvent[] = [];
    follow(rig, told).catch(() => undefined); // ends with the link
    for (let second = 0; second < 20; second += 1) {
      for (let dial = 0; dial < 50; dial += 1) intrude(rig, 9);
      await rig.clock.advance(1_000);
    }
    await rig.clock.advance(5_000);
    const refusals = told.filter(({ name }) => name === "bridge/daemon-refused");
    assert.ok(refusals.length <= 6, `${refusals.length} records of 1000 refusals`);
    const count = refusals.reduce((sum, { fields }) => sum + fields.times, 0);
    assert.equal(count, 1_000, "none is lost");
    rig.close();
  });

  test("a flood of different things is bounded, and what found no room is counted", async () => {
    const rig = new HostRig();
    await rig.told();
    for (let turn = 0; turn < 1_000; turn += 1)
      await rig.call("GET", "/health", { activation: newActivationId(rig.random) });
    const events = await rig.told();
    assert.ok(events.length <= 258, `${events.length} records`);
    assert.equal(
      events.reduce((sum, { fields }) => sum + fields.times, 0),
      1_000,
    );
    assert.ok(events.some(({ name, fields }) => name === "bridge/suppressed" && fields.times >= 700));
    rig.close();
  });

  test("what a daemon has not acknowledged is told to the next", async () => {
    const rig = await HostRig.adopted();
    const first = await rig.control.takeReport(null);
    rig.dial();
    const again = await rig.control.takeReport(null);
    assert.deepEqual(again, first);
    const { source, number } = first;
    const next = rig.control.takeReport({ source, number });
    await rig.clock.advance(5_000);
    assert.deepEqual(named((await next).events), ["bridge/daemon-accepted 1"], "the second dial, alone");
    rig.close();
  });
});
