// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// R-22 with a caller that reads slowly: what waits at the gateway when its stream is cut.

import assert from "node:assert/strict";
import { test } from "node:test";
import { enveloped, FakeNamedStreams, positionOf } from "../src/fake-named-streams.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { StreamCaller } from "../src/stream-caller.ts";

test("R-22: a slow reader's stream goes on after a cut with each byte once, and its pace still reaches the worker", async () => {
  await using rig = await GatewayRig.start();
  const streams = new FakeNamedStreams();
  rig.worker.serve = (operation) => streams.serve(operation);
  const caller = await StreamCaller.open(rig, "/process.Process/Start");
  const first = await rig.worker.operation(0);
  const { key } = positionOf(first);
  caller.stopReading();
  await fill(rig, streams, key);
  const second = rig.worker.operation(1);
  first.stream.reset("epoch-ended");
  await rig.clock.advance(1000);
  await second;
  await fill(rig, streams, key);
  const total = streams.bytesOf(key).length;
  assert.ok(caller.bytes.length < total, "something waits on the way");
  caller.readOn();
  for (let turn = 0; turn < 100 && caller.bytes.length < total; turn += 1) await rig.settle();
  assert.equal(caller.bytes.length, total);
  assert.ok(caller.bytes.equals(streams.bytesOf(key)));
  assert.equal(caller.end, "open");
  streams.send(key, enveloped("more"));
  await rig.settle();
  assert.ok(caller.bytes.equals(streams.bytesOf(key)), "its pace is given back to the connection of now");
});

/** Sends numbered messages until the gateway has stopped taking them. */
async function fill(rig: GatewayRig, streams: FakeNamedStreams, key: string): Promise<void> {
  const filler = "x".repeat(256 * 1024);
  for (let at = 0; at < 24; at += 1) streams.send(key, enveloped(`${at} ${filler}`));
  await rig.settle();
}
