// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// a caller that leaves while its stream is held: its bridge hears of it as if the stream had not been cut.

import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import type { ResolveAnswer } from "@space/model";
import { continuationWaitMs } from "@space/wire";
import { enveloped, positionOf } from "../src/fake-named-streams.ts";
import { fakeIdentity } from "../src/fake-route-source.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { begun, connect, pause, runsAs, type StreamScene, start, watch } from "../src/stream-scene.ts";

/** Its caller is gone, and the gateway holds nothing of the request any more. */
async function leaves({ rig, caller }: StreamScene): Promise<void> {
  caller.leave();
  while (rig.gateway.underWay > 0) await new Promise((resolve) => setImmediate(resolve));
}

for (const path of [start, connect, watch])
  test(`R-22: ${path}: a caller that leaves while it is held is told to the bridge as soon as one can be told`, async () => {
    await using scene = await begun(path);
    const { rig, caller, key, streams, current } = scene;
    streams.send(key, enveloped("one"));
    await rig.settle();
    pause(scene);
    await rig.clock.advance(3000);
    await leaves(scene);
    const before = rig.worker.operations.length;
    runsAs(scene, 2n);
    await rig.clock.advance(1000);
    await rig.settle();
    const told = current();
    assert.equal(rig.worker.operations.filter(({ resetBy }) => resetBy === "cancelled").length, 1);
    assert.equal(told.resetBy, "cancelled");
    assert.equal(told.head.path, path === start ? connect : path, "nothing is begun for it");
    assert.deepEqual(positionOf(told), { key, answerOffset: enveloped("one").length });
    assert.ok(rig.worker.operations.length <= before + 2, "one repair, and the word");
    const asked = [rig.routes.requests.length, rig.worker.operations.length];
    await rig.clock.advance(100_000);
    assert.deepEqual([rig.routes.requests.length, rig.worker.operations.length], asked);
    assert.equal(caller.bytes.length, enveloped("one").length);
  });

test("R-22: a start with the caller's key of which no answer came is not begun for a caller that has left", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const headers = { ...rig.routing(), "content-type": "application/connect+json", "idempotency-key": "k" };
  const sent = request({
    host: "127.0.0.1",
    port: rig.port,
    path: start,
    method: "POST",
    headers,
    agent: false,
  });
  sent.on("error", () => undefined);
  sent.end(enveloped("{}"));
  const first = await rig.worker.operation(0);
  rig.routes.answer = () => ({ kind: "not-running" });
  rig.worker.serve = (operation) => operation.refreshRoute(fakeIdentity(1n));
  first.stream.reset("epoch-ended");
  await rig.settle();
  sent.destroy();
  while (rig.gateway.underWay > 0) await new Promise((resolve) => setImmediate(resolve));
  const before = rig.worker.operations.length;
  rig.routes.answer = undefined;
  rig.worker.serve = (operation) => operation.fail("stream/lost");
  await rig.clock.advance(2000);
  await rig.settle();
  assert.deepEqual(
    rig.worker.operations.slice(before).map(({ head }) => head.path),
    [connect],
    "asked for by its name, which starts nothing",
  );
});

test("R-22: a bridge that cannot be told for as long as it waits is not told, and of a sandbox that is gone nobody is", async () => {
  for (const [answer, waitedMs] of [
    [(): ResolveAnswer => ({ kind: "not-running" }), continuationWaitMs],
    [(): ResolveAnswer => ({ kind: "not-found" }), 1000],
  ] as const) {
    await using scene = await begun();
    const { rig } = scene;
    pause(scene);
    await rig.clock.advance(3000);
    await leaves(scene);
    rig.routes.answer = answer;
    await rig.clock.advance(waitedMs);
    const asked = rig.routes.requests.length;
    await rig.clock.advance(10_000);
    assert.equal(rig.routes.requests.length, asked);
    assert.equal(rig.worker.operations.filter(({ resetBy }) => resetBy === "cancelled").length, 0);
  }
});

test("R-22: callers that left are told of within a bound, and those of a gateway that closes not at all", async () => {
  await using scene = await begun(start, { limits: { farewells: 0 } });
  const { rig } = scene;
  pause(scene);
  await rig.clock.advance(3000);
  await leaves(scene);
  const asked = rig.routes.requests.length;
  await rig.clock.advance(10_000);
  assert.equal(rig.routes.requests.length, asked);
  await using other = await begun();
  pause(other);
  await other.rig.clock.advance(3000);
  await leaves(other);
  other.rig.gateway.close();
  const before = other.rig.routes.requests.length;
  await other.rig.clock.advance(10_000);
  assert.equal(other.rig.routes.requests.length, before);
});
