// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// at the gateway: the cache seen from outside, the one repair, and what is never sent twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSandboxId } from "@space/model";
import { fakeIdentity, fakeSandboxId, nextIdentity } from "../src/fake-route-source.ts";
import type { FakeOperation } from "../src/fake-worker-link.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";

const generationOf = ({ head }: FakeOperation): string => head.capability.split(" ")[2] ?? "";
const start = "/process.Process/Start";

/** A worker at which `current` is installed: it refuses every other execution's capability. */
function serveOnly(rig: GatewayRig, current: bigint): void {
  rig.worker.serve = (operation) => {
    const presented = BigInt(generationOf(operation));
    if (presented === current) operation.admit(200, [], `served by ${current}`);
    else operation.refreshRoute(fakeIdentity(presented));
  };
}

/** The sandbox now runs as its next generation; the control plane and the worker know, the gateway does not. */
function move(rig: GatewayRig): bigint {
  const next = nextIdentity(rig.routes.identities.get(fakeSandboxId) ?? assert.fail());
  rig.routes.identities.set(fakeSandboxId, next);
  serveOnly(rig, next.generation);
  return next.generation;
}

test("R-23: one look-up serves a caller's requests of one kind until the entry ends, used or not", async () => {
  await using rig = await GatewayRig.start();
  for (let second = 0; second < 44; second += 1) {
    await rig.fetch("/files?path=a");
    await rig.clock.advance(1000);
  }
  assert.equal(rig.routes.requests.length, 1);
  await rig.clock.advance(20_000);
  await rig.fetch("/files?path=a");
  assert.equal(rig.routes.requests.length, 2);
});

test("R-23, incident 27: an entry that is used all the time ends when it would have ended unused", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  rig.routes.answer = () => Promise.reject(new Error("down")); // so that nothing but its use could renew it
  let used = 0;
  for (let second = 1; second < 60; second += 1) {
    await rig.clock.advance(1000);
    used += (await rig.fetch("/files?path=a")).status === 200 ? 1 : 0;
  }
  faultLanded("the entry was used in every second of its life", used - 58);
  await rig.clock.advance(1000);
  assert.equal((await rig.fetch("/files?path=a")).status, 503);
  assert.equal(rig.worker.operations.length, 60);
});

test("R-23: another token, another sandbox or another access is another entry", async () => {
  await using rig = await GatewayRig.start();
  const other = parseSandboxId(`i${"b".repeat(20)}`);
  rig.routes.identities.set(other, fakeIdentity(1n, other));
  await rig.fetch("/files?path=a");
  await rig.fetch("/files?path=a", { headers: { ...rig.routing(), "x-access-token": "token2" } });
  await rig.fetch("/files?path=a", { headers: { ...rig.routing(), "e2b-sandbox-id": other } });
  await rig.fetch("/process.Process/List", { method: "POST", body: "{}" });
  await rig.fetch("/files?path=a");
  assert.equal(rig.routes.requests.length, 4);
  assert.deepEqual(
    rig.worker.operations.map(({ head }) => head.capability.split(" ")[1]),
    ["0", "1", "2", "3", "0"],
  );
});

test("R-23: an entry's authorisation is never taken apart from its route", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  rig.routes.answer = () => ({ kind: "unauthenticated", problem: "wrong" });
  const wrong = await rig.fetch("/files?path=a", {
    headers: { ...rig.routing(), "x-access-token": "guess" },
  });
  assert.equal(wrong.status, 401);
  assert.equal(rig.worker.operations.length, 1);
});

test("R-24: a moved sandbox is found again within the request, with a new capability and admission (R-27)", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  move(rig);
  const answer = await rig.fetch(start, { method: "POST", body: "{}" });
  assert.deepEqual([answer.status, answer.body], [200, "served by 2"]);
  const reread = await rig.fetch("/files?path=a");
  assert.equal(reread.body, "served by 2");
  const [, , refused, served] = rig.worker.operations;
  assert.ok(refused !== undefined && served !== undefined);
  assert.equal(generationOf(refused), "1");
  assert.equal(generationOf(served), "2");
  assert.notEqual(refused.head.admission, served.head.admission);
  assert.deepEqual([rig.gateway.counts.refreshes, rig.gateway.counts.repairs], [1, 1]);
});

test("R-26: one repair per request, then a 503 that may be tried again", async () => {
  await using rig = await GatewayRig.start();
  let generation = 1n;
  rig.worker.serve = (operation) => {
    operation.refreshRoute(fakeIdentity(BigInt(generationOf(operation))));
    generation += 1n;
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(generation));
  };
  const answer = await rig.fetch("/files?path=a");
  assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
  assert.equal(rig.worker.operations.length, 2);
  assert.equal(rig.routes.requests.length, 2);
});

test("R-24: a look-up that finds the rejected route again is not tried: 503", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.refreshRoute(fakeIdentity(1n));
  const answer = await rig.fetch("/files?path=a");
  assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
  assert.equal(rig.worker.operations.length, 1);
  assert.equal(rig.routes.requests.length, 2);
});

test("R-24: 200 callers of a moved sandbox share one look-up and all are served once", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  rig.worker.serve = () => undefined;
  const callers = Array.from({ length: 200 }, () => rig.fetch("/files?path=a"));
  await rig.worker.operation(200);
  move(rig);
  rig.routes.hold();
  for (const presented of rig.worker.operations.slice(1)) presented.refreshRoute(fakeIdentity(1n));
  await rig.routes.asked(2);
  // These come while the repair is under way: they wait for it instead of trying the rejected route.
  callers.push(rig.fetch("/files?path=a"), rig.fetch("/files?path=a"));
  while (rig.gateway.underWay < 202) await new Promise((resolve) => setImmediate(resolve));
  rig.routes.release();
  const answers = await Promise.all(callers);
  assert.ok(answers.every(({ status, body }) => status === 200 && body === "served by 2"));
  assert.equal(rig.routes.requests.length, 2);
  assert.equal(rig.worker.operations.filter((operation) => generationOf(operation) === "2").length, 202);
});

test("R-24: only a recognised refresh-route leads to a repair", async () => {
  await using rig = await GatewayRig.start();
  const answers: ((operation: FakeOperation) => void)[] = [
    (operation) => operation.admit(421, ["content-type", "text/plain"], "refresh-route"),
    (operation) => operation.admit(503, [], "no"),
    (operation) => operation.admit(502, [], "no"),
    (operation) => operation.deny(),
    (operation) => operation.stream.reset("refresh-route"),
    (operation) => operation.answer(421, ["space-verdict", "refresh-route"], ""),
  ];
  for (const serve of answers) {
    rig.worker.serve = serve;
    await rig.fetch(start, { method: "POST", body: "{}" });
  }
  assert.equal(rig.gateway.counts.repairs, 0);
  assert.equal(rig.worker.operations.length, answers.length);
});

test("incident 34: a 5xx of the guest's is passed on and never tried again", async () => {
  await using rig = await GatewayRig.start();
  for (const status of [500, 502, 503, 504]) {
    rig.worker.serve = (operation) => operation.admit(status, ["retry-after", "0"], "mine");
    assert.equal((await rig.fetch(start, { method: "POST", body: "{}" })).body, "mine");
    assert.equal((await rig.fetch("/files?path=a")).status, status);
  }
  faultLanded("a start was answered with each 5xx", rig.worker.operations.length / 2 - 3);
  assert.equal(rig.worker.operations.length, 8);
});

test("R-24: a repair never lets in a caller whom the control plane refuses", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=a");
  move(rig);
  rig.routes.answer = () => ({ kind: "unauthenticated", problem: "wrong" });
  assert.equal((await rig.fetch("/files?path=a")).status, 401);
  rig.routes.answer = () => ({ kind: "not-running" });
  assert.equal((await rig.fetch("/files?path=a")).status, 502);
  assert.equal(rig.worker.operations.filter((operation) => generationOf(operation) === "2").length, 0);
});

test("incident 8: a request queued for an execution that is gone is never replayed to the next one", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const queued = rig.fetch(start, { method: "POST", body: "{}" });
  const operation = await rig.worker.operation(0);
  move(rig);
  rig.worker.serve = (other) => {
    if (generationOf(other) === "1") other.refreshRoute(fakeIdentity(1n));
    else other.fail("stream/lost");
  };
  await operation.until(() => operation.bodyEnded);
  faultLanded("the whole start was queued at the execution that ended", operation.bodyBytes);
  operation.stream.reset("epoch-ended");
  const answer = await queued;
  assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
  assert.match(answer.body, /unknown/);
  // The next execution was asked whether it knows it, by its name: that starts nothing.
  const next = rig.worker.operations.filter((other) => generationOf(other) === "2");
  assert.deepEqual(
    next.map(({ head, bodyBytes }) => [head.path, bodyBytes]),
    [["/process.Process/Connect", 0]],
  );
});

test("R-28: a read whose answer never came is tried once more, a start is not", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.stream.reset("transport");
  const read = await rig.fetch("/files?path=a");
  assert.deepEqual([read.status, rig.worker.operations.length], [503, 2]);
  const effect = await rig.fetch(start, { method: "POST", body: "{}" });
  assert.deepEqual([effect.status, effect.headers["retry-after"]], [503, "1"]);
  const starts = rig.worker.operations.filter(({ head }) => head.path === start);
  assert.equal(starts.length, 1);
  const before = rig.worker.operations.length;
  const port = await rig.fetch("/", { headers: rig.routing(3000) });
  assert.deepEqual([port.status, rig.worker.operations.length], [503, before + 1]);
  let count = 0;
  rig.worker.serve = (operation) => {
    count += 1;
    if (count === 1) operation.stream.reset("transport");
    else operation.admit(200, [], "second");
  };
  assert.equal((await rig.fetch("/files?path=a")).body, "second");
});

test("R-28: when a link breaks, reads under way go over a fresh one and starts fail", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const read = rig.fetch("/files?path=a");
  await rig.worker.operation(0);
  const effect = rig.fetch(start, { method: "POST", body: "{}" });
  await rig.worker.operation(1);
  rig.worker.serve = (operation) => {
    if (operation.head.path === "/process.Process/Connect") operation.fail("stream/lost");
    else operation.admit(200, [], "fresh");
  };
  rig.worker.links[0]?.destroy(undefined);
  assert.equal((await read).body, "fresh");
  assert.equal((await effect).status, 503);
  assert.equal(rig.dialled.length, 2);
});

test("R-28: an answer that breaks off is never begun again", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => {
    operation.admit(200, ["content-length", "10"]);
    operation.stream.send(Buffer.from("half"));
    operation.stream.reset("transport");
  };
  await assert.rejects(rig.fetch("/files?path=a"));
  assert.equal(rig.worker.operations.length, 1);
});

test("R-28: a worker that cannot be reached: a read asks anew where the sandbox is, a start is told to try again", async () => {
  await using rig = await GatewayRig.start();
  const there = rig.dial;
  rig.dial = () => Promise.reject(new Error("refused"));
  assert.equal((await rig.fetch(start, { method: "POST", body: "{}" })).status, 503);
  assert.equal(rig.routes.requests.length, 1);
  await rig.clock.advance(1000);
  const read = await rig.fetch("/files?path=a");
  assert.deepEqual([read.status, rig.routes.requests.length], [503, 3]);
  await rig.clock.advance(1000);
  rig.dial = (endpoint) => {
    rig.dial = there;
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    return Promise.reject(new Error(endpoint.host));
  };
  rig.routes.answer = (request, number) => {
    const answer = rig.routes.entry(request, number);
    if (answer.kind !== "entry") return answer;
    const { route } = answer.entry;
    const port = Number(route.identity.generation);
    return {
      ...answer,
      entry: { ...answer.entry, route: { ...route, endpoint: { ...route.endpoint, port } } },
    };
  };
  rig.routes.identities.set(fakeSandboxId, fakeIdentity(1n));
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
  assert.deepEqual(
    rig.dialled.map(({ port }) => port),
    [1, 1, 1, 2],
  );
});

test("a worker that never answers is given up in time", async () => {
  await using rig = await GatewayRig.start({ limits: { answerWaitMs: 10_000 } });
  rig.worker.serve = () => undefined;
  const waiting = rig.fetch(start, { method: "POST", body: "{}" });
  const operation = await rig.worker.operation(0);
  await rig.clock.advance(10_000);
  assert.equal((await waiting).status, 503);
  await operation.until(() => operation.resetBy !== undefined);
});
