// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// R-25 at the gateway: nothing is presented after its caller's authorisation has ended, whatever it waited for meanwhile
// and whatever the clocks show, and what runs is not forgotten.

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { fileSignature } from "@space/control-plane";
import type { ResolveAnswer } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import type { FakeOperation } from "../src/fake-worker-link.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { settle } from "../src/virtual-clock.ts";

/** The number of the look-up that granted what was presented. */
const lookUpOf = ({ head }: FakeOperation): number => Number(head.capability.split(" ")[1]);
const down = (): Promise<ResolveAnswer> => Promise.reject(new Error("down"));

/** A read that has been presented, and of which no answer comes. */
async function unansweredRead(rig: GatewayRig) {
  rig.worker.serve = () => undefined;
  const read = rig.fetch("/files?path=a");
  await rig.worker.operation(0);
  rig.worker.serve = (operation) => operation.admit(200, [], "again");
  return { read, breakOff: () => rig.worker.links[0]?.destroy(undefined) };
}

test("R-25: a read that is tried again after a minute is presented on a check of then", async () => {
  await using rig = await GatewayRig.start();
  const { read, breakOff } = await unansweredRead(rig);
  rig.routes.answer = down;
  for (let second = 0; second < 61; second += 1) await rig.clock.advance(1000);
  rig.routes.answer = undefined;
  const before = rig.routes.requests.length;
  breakOff();
  assert.equal((await read).body, "again");
  assert.deepEqual(rig.worker.operations.map(lookUpOf), [0, before]);
});

test("R-25: a read is not tried again on an authorisation that has ended when its caller cannot be checked, or is refused", async () => {
  for (const [answer, status] of [
    [down, 503],
    [(): ResolveAnswer => ({ kind: "not-running" }), 502],
    [(): ResolveAnswer => ({ kind: "unauthenticated", problem: "signature-expired" }), 401],
  ] as const) {
    await using rig = await GatewayRig.start();
    const { read, breakOff } = await unansweredRead(rig);
    rig.routes.answer = answer;
    for (let second = 0; second < 61; second += 1) await rig.clock.advance(1000);
    breakOff();
    assert.equal((await read).status, status);
    assert.equal(rig.worker.operations.length, 1);
  }
});

test("R-25: a repair that takes longer than the authorisation lasted is no check: its caller is checked before anything is presented", async () => {
  for (const isRefused of [false, true]) {
    await using rig = await GatewayRig.start();
    await rig.fetch("/files?path=a");
    await rig.clock.advance(40_000);
    rig.worker.serve = (operation) => {
      if (operation.head.capability.endsWith(" 2")) operation.admit(200, [], "moved");
      else operation.refreshRoute(fakeIdentity(1n));
    };
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    rig.routes.hold();
    const read = rig.fetch("/files?path=a");
    await rig.routes.asked(2);
    await rig.clock.advance(25_000); // a replica that stands still for so long
    if (isRefused) rig.routes.answer = () => ({ kind: "unauthenticated", problem: "wrong" });
    rig.routes.release();
    assert.equal((await read).status, isRefused ? 401 : 200);
    const presented = rig.worker.operations.map(lookUpOf);
    assert.deepEqual(presented, isRefused ? [0, 0] : [0, 0, 2]);
  }
});

test("R-25: an authorisation that ends while the worker is dialled is not presented to it", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  rig.worker.links[0]?.destroy(undefined);
  rig.routes.answer = down;
  await rig.clock.advance(59_000);
  const there = rig.dial;
  const dialled = Promise.withResolvers<void>();
  rig.dial = (endpoint) => dialled.promise.then(() => there(endpoint));
  const read = rig.fetch("/files?path=a");
  while (rig.dialled.length < 2) await settle(1);
  await rig.clock.advance(1000);
  rig.routes.answer = undefined;
  const before = rig.routes.requests.length;
  dialled.resolve();
  assert.equal((await read).status, 200);
  assert.deepEqual(rig.worker.operations.map(lookUpOf), [0, before]);
});

test("R-25: a control plane whose answers have always ended costs two look-ups and a 503, not a loop", async () => {
  await using rig = await GatewayRig.start();
  rig.routes.authorisedForMs = 0;
  const answer = await rig.fetch("/files?path=a");
  assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
  assert.deepEqual([rig.routes.requests.length, rig.worker.operations.length], [2, 0]);
});

test("R-25: a gateway whose clock is an hour off, either way, holds an entry as long as any other", async () => {
  for (const skewMs of [-3_600_000, 3_600_000]) {
    await using rig = await GatewayRig.start({ skewMs });
    for (let second = 0; second < 44; second += 1) {
      await rig.fetch("/files?path=a");
      await rig.clock.advance(1000);
    }
    assert.equal(rig.routes.requests.length, 1);
    rig.routes.answer = down;
    await rig.clock.advance(16_000);
    assert.equal((await rig.fetch("/files?path=a")).status, 503);
  }
});

const presenter = hash("sha256", "gateway certificate", "base64url");
/** How far ahead of true time a machine's clock is, at the most (R-9 allows two of them to be 15 s apart). */
const fastMs = 7500;

for (const gatewayMs of [-fastMs, fastMs])
  test(`R-25: a signed URL ends by the clock of the replica that answers, though the gateway's is ${gatewayMs} ms ahead and replicas take turns`, async (context) => {
    const { rig: control, workers } = await ControlRig.open(context, { workers: 1 });
    const { clock } = control;
    const slow = await control.openReplica("slow", undefined, clock.aheadBy(-fastMs));
    const fast = await control.openReplica("fast", undefined, clock.aheadBy(fastMs));
    const { sandboxId, accessToken } = await control.create();
    await using rig = await GatewayRig.start({ clock, skewMs: gatewayMs });
    const endsMs = Math.floor(clock.wallMs() / 1000) * 1000 + 80_000;
    const of = { path: "a", operation: "read", username: "user", expiresAtSeconds: endsMs / 1000 } as const;
    const url = `/files?path=a&username=user&signature=${encodeURIComponent(fileSignature(of, accessToken))}&signature_expiration=${of.expiresAtSeconds}`;
    const headers = { "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": "49983" };
    const replicas = [slow, fast] as const;
    let lastServedMs = 0;
    let refusedByFast = 0;
    rig.routes.answer = async (request, number) => {
      const isFast = number % 2 === 1;
      const replica = isFast ? fast : slow;
      control.detach(workers[0]); // a worker hears one replica at a time
      await control.attach(workers[0], replica);
      const answer = await replica.routes.resolve({ ...request, presenter });
      if (isFast && answer.kind === "unauthenticated") refusedByFast += 1;
      return answer;
    };
    for (let second = 0; second < 100; second += 1) {
      const { status } = await rig.fetch(url, { headers });
      assert.ok(status === 200 || status === 401, `${status}`);
      if (status === 200) lastServedMs = clock.wallMs();
      await clock.advance(1000);
    }
    faultLanded("the fast replica refused what the slow one still granted", refusedByFast);
    assert.ok(lastServedMs <= endsMs + fastMs, `${lastServedMs - endsMs} ms after its end`);
    assert.ok(lastServedMs > endsMs, "the slow replica's clock had not come so far");
    await Promise.all(replicas.map((replica) => replica.close()));
  });

test("R-25: a stream whose caller is no longer authorised is closed in time, another's is not", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200);
  const body = (token: string) =>
    rig.fetch("/process.Process/Connect", {
      method: "POST",
      body: "{}",
      headers: { ...rig.routing(), "x-access-token": token },
    });
  const revoked = body("revoked");
  await rig.worker.operation(0);
  const fine = body("fine");
  const second = await rig.worker.operation(1);
  rig.routes.answer = (request, number) =>
    request.credential.kind === "access-token" && request.credential.token.reveal() === "revoked"
      ? { kind: "unauthenticated", problem: "wrong" }
      : rig.routes.entry(request, number);
  const cut = assert.rejects(revoked);
  for (let step = 0; step < 12; step += 1) {
    await rig.clock.advance(5000);
  }
  await cut;
  assert.equal(rig.gateway.underWay, 1);
  assert.ok(rig.audited.some(({ name }) => name === "caller/revoked"));
  second.stream.send(Buffer.from("still here"));
  second.stream.end();
  assert.equal((await fine).body, "still here");
});

test("R-25: a caller whose sandbox ends under its request hears that nothing runs, and is not called unauthorised", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const read = rig.fetch("/files?path=a");
  const operation = await rig.worker.operation(0);
  rig.routes.answer = () => ({ kind: "not-found" });
  for (let step = 0; step < 12; step += 1) await rig.clock.advance(5000);
  assert.equal((await read).status, 502);
  await rig.settle();
  assert.equal(operation.resetBy, "cancelled");
  assert.ok(!rig.audited.some(({ name }) => name === "caller/revoked"));
});

test("R-25: a stream outlives an outage of the control plane, which says nothing of its caller, as long as a worker holds it without a lease", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200);
  const stream = rig.fetch("/process.Process/Connect", { method: "POST", body: "{}" });
  const operation = await rig.worker.operation(0);
  rig.routes.answer = down;
  const cut = assert.rejects(stream);
  for (let second = 0; second < 180; second += 5) {
    assert.equal(operation.resetBy, undefined, `after ${second} s`);
    await rig.clock.advance(5000);
  }
  await rig.settle();
  assert.equal(operation.resetBy, "cancelled");
  await cut;
});

test("R-25: a stream whose caller is checked again and again goes on, also while nothing runs or its signature has ended", async () => {
  for (const answer of [
    undefined,
    (): ResolveAnswer => ({ kind: "not-running" }),
    (): ResolveAnswer => ({ kind: "unauthenticated", problem: "signature-expired" }),
  ]) {
    await using rig = await GatewayRig.start();
    rig.worker.serve = (operation) => operation.admit(200);
    const stream = rig.fetch("/process.Process/Connect", { method: "POST", body: "{}" });
    const operation = await rig.worker.operation(0);
    rig.routes.answer = answer;
    for (let step = 0; step < 60; step += 1) await rig.clock.advance(5000);
    operation.stream.end();
    assert.equal((await stream).status, 200);
  }
});
