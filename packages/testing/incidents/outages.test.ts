// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { newSigningKey } from "@space/capability";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { StreamCaller } from "../src/stream-caller.ts";
import { verdictOf, WorkerRig } from "../src/worker-rig.ts";

const minute = 60_000;
const hour = 60 * minute;

test("incident 30: while keys overlap both count, and once removed the old one counts nowhere, remembered or not", async () => {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const next = newSigningKey();
  const token = (key = rig.authority.key) =>
    rig.authority.capability({ identity, presenter: rig.presenter, key });
  const [remembered, unseen] = [token(), token()];
  const ask = async (capability: string) => verdictOf(await rig.ask(identity, { capability }));
  assert.deepEqual(
    [await ask(remembered), await ask(token(next))],
    ["match", "deny"],
    "not before it is told",
  );
  await rig.worker.control.replaceKeys(rig.authority.bundle(2, [rig.authority.key, next]));
  assert.deepEqual([await ask(remembered), await ask(token(next))], ["match", "match"]);
  await rig.worker.control.replaceKeys(rig.authority.bundle(3, [next]));
  faultLanded(
    "the key was removed",
    rig.audit.of("keys/replaced").filter(({ version }) => version === 3).length,
  );
  assert.deepEqual(
    [await ask(remembered), await ask(unseen), await ask(token(next))],
    ["deny", "deny", "match"],
  );
});

test("incident 35: what expired in an outage is final, nobody dials for it, and it comes back by itself", async () => {
  await using rig = await GatewayRig.start();
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
  const dialled = rig.dialled.length;
  rig.routes.answer = () => Promise.reject(new Error("down"));
  rig.worker.links[0]?.destroy(undefined); // and the way to the worker is gone too
  const there = rig.dial;
  rig.dial = () => Promise.reject(new Error("refused"));
  await rig.clock.advance(minute);
  const asked = rig.routes.requests.length;
  let refused = 0;
  for (let round = 0; round < 10; round += 1) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.fetch("/files?path=a")));
    refused += answers.filter(
      ({ status, headers }) => status === 503 && headers["retry-after"] === "1",
    ).length;
    await rig.clock.advance(minute);
  }
  faultLanded("the authorisation expired while nobody could renew it", refused - 199);
  assert.equal(rig.dialled.length, dialled, "no connection was tried for an authorisation that had ended");
  assert.ok(rig.routes.requests.length - asked <= 200, "one question at most for each request, none without");
  rig.dial = there;
  rig.routes.answer = undefined;
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
});

test("incident 35: callers of a worker that cannot be reached share one dial, and then a pause", async () => {
  await using rig = await GatewayRig.start();
  const dials: PromiseWithResolvers<never>[] = [];
  rig.dial = () => {
    const dial = Promise.withResolvers<never>();
    dials.push(dial);
    return dial.promise;
  };
  let refused = 0;
  for (let storm = 1; storm <= 4; storm += 1) {
    const callers = Array.from({ length: 100 }, () => rig.fetch("/files?path=a"));
    while (rig.gateway.underWay < callers.length) await new Promise((resolve) => setImmediate(resolve));
    await rig.settle();
    assert.equal(dials.length, storm, "all of them wait for one dial");
    dials.at(-1)?.reject(new Error("refused"));
    refused += (await Promise.all(callers)).filter(({ status }) => status === 503).length;
    assert.equal((await rig.fetch("/files?path=a")).status, 503);
    assert.equal(dials.length, storm, "and who comes right after is told at once");
    await rig.clock.advance(250);
  }
  faultLanded("four storms of a hundred callers failed", refused - 399);
});

test("incident 11: a terminal that nobody uses for hours is kept alive on the gateway's own leg to the worker", async () => {
  await using rig = await GatewayRig.start();
  let pings = 0;
  rig.dial = async () => {
    const worker = await rig.worker.dial();
    const [near, tapped] = duplexPair();
    tapped.on("data", () => {
      pings += 1;
    });
    tapped.pipe(worker).pipe(tapped);
    return near;
  };
  rig.worker.serve = (operation) => operation.admit(200, ["content-type", "application/connect+json"]);
  const caller = await StreamCaller.open(rig, "/process.Process/Start");
  const operation = await rig.worker.operation(0);
  const before = pings;
  const beganMs = rig.clock.monotonicMs();
  await rig.clock.advance(3 * hour);
  const hours = (rig.clock.monotonicMs() - beganMs) / hour;
  faultLanded("nothing was typed or shown for three hours", caller.bytes.length > 0 ? 0 : hours - 2);
  assert.ok(
    pings - before >= 3 * 180,
    `${pings - before} signs of life crossed the leg: one at least in 20 s`,
  );
  operation.stream.send(Buffer.from("prompt"));
  await rig.settle();
  assert.deepEqual([caller.bytes.toString(), caller.end, rig.worker.links.length], ["prompt", "open", 1]);
});
