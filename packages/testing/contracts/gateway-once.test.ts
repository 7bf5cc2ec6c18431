// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// starts and inputs whose answers are lost: each takes effect once, or its caller is told that nobody knows.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, test } from "node:test";
import { continuationWaitMs } from "@space/wire";
import { enveloped, FakeNamedStreams, positionOf } from "../src/fake-named-streams.ts";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import type { FakeOperation } from "../src/fake-worker-link.ts";
import { GatewayRig, textOf } from "../src/gateway-rig.ts";
import { StreamCaller } from "../src/stream-caller.ts";

const start = "/process.Process/Start";
const connect = "/process.Process/Connect";

/** Serves it when its whole body has come. */
function whenWhole(operation: FakeOperation, serve: () => void): void {
  void operation.until(() => operation.bodyEnded).then(serve);
}

describe("R-28: a start of which no answer came", () => {
  test("is found by its name when it ran, and its caller never notices", async () => {
    await using rig = await GatewayRig.start();
    const streams = new FakeNamedStreams();
    let lost = 0;
    rig.worker.serve = (operation) => {
      streams.serve(operation);
      if (lost > 0) return;
      lost += 1;
      operation.stream.reset("transport");
    };
    // The head of the first answer is lost as well.
    const admit = rig.worker.serve;
    rig.worker.serve = (operation) => {
      if (lost === 0) operation.admit = () => undefined;
      admit(operation);
    };
    const caller = await StreamCaller.open(rig, start);
    const [first = assert.fail(), second = assert.fail()] = rig.worker.operations;
    assert.deepEqual([first.head.path, second.head.path], [start, connect]);
    assert.deepEqual(positionOf(second), { ...positionOf(first), answerOffset: 0 });
    streams.send(positionOf(first).key, enveloped("one"));
    await rig.settle();
    assert.deepEqual(caller.bytes, enveloped("one"));
  });

  test("with the caller's idempotency key is presented again whole, under the same name, and is told apart from a first", async () => {
    await using rig = await GatewayRig.start();
    rig.worker.serve = (operation) =>
      whenWhole(operation, () => {
        if (rig.worker.operations.length === 1) operation.stream.reset("transport");
        else operation.admit(200, ["content-type", "application/connect+json"], enveloped("{}", 2));
      });
    const caller = await StreamCaller.open(rig, start, { "idempotency-key": "once-only-please" });
    await rig.settle();
    assert.equal(caller.end, "ended");
    const [first = assert.fail(), second = assert.fail()] = rig.worker.operations;
    assert.deepEqual([second.head.path, second.body], [start, first.body]);
    assert.deepEqual(positionOf(second), { ...positionOf(first), answerOffset: 0 });
    assert.equal(second.header("idempotency-key"), "once-only-please");
  });

  test("that nobody knows of is not run: the caller is told that its outcome is unknown, and when to look", async () => {
    await using rig = await GatewayRig.start();
    rig.worker.serve = (operation) => {
      if (operation.head.path === start) operation.stream.reset("transport");
      else operation.fail("stream/lost");
    };
    const answer = await rig.fetch(start, { method: "POST", body: "{}" });
    assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
    assert.match(answer.body, /whether the request had its effect is unknown/);
    assert.equal(rig.worker.operations.filter(({ head }) => head.path === start).length, 1);
  });

  test("an attachment that never arrived is presented as if for the first time, once", async () => {
    await using rig = await GatewayRig.start();
    const streams = new FakeNamedStreams();
    rig.worker.serve = (operation) =>
      whenWhole(operation, () => {
        if (rig.worker.operations.length === 1) operation.stream.reset("link/closed");
        else streams.serve(operation);
      });
    const caller = await StreamCaller.open(rig, connect);
    assert.equal(caller.end, "open");
    assert.deepEqual(
      rig.worker.operations.map((operation) => [operation.bodyBytes > 0, positionOf(operation).answerOffset]),
      [
        [true, undefined],
        [false, 0],
        [true, undefined],
      ],
    );
  });
});

describe("R-22: input while the incarnation changes", () => {
  const sendInput = "/process.Process/SendInput";

  test("a piece of input is presented again under its name until it is answered, also across a pause", async () => {
    await using rig = await GatewayRig.start();
    const written: string[] = [];
    const known = new Set<string>();
    let paused = false;
    rig.worker.serve = (operation) => {
      if (paused) return operation.refreshRoute(fakeIdentity(1n));
      whenWhole(operation, () => {
        const { key } = positionOf(operation);
        if (!known.has(key)) written.push(operation.body.toString());
        known.add(key);
        if (rig.worker.operations.length > 1) return operation.admit(200, [], "{}");
        paused = true; // written, and the answer is lost in the pause
        rig.routes.answer = () => ({ kind: "not-running" });
        operation.stream.reset("epoch-ended");
      });
    };
    const sent = rig.fetch(sendInput, { method: "POST", body: '{"x":1}' });
    const first = await rig.worker.operation(0);
    await rig.settle();
    assert.equal(paused, true);
    await rig.clock.advance(20_000);
    paused = false;
    rig.routes.answer = undefined;
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    await rig.clock.advance(3000);
    assert.equal((await sent).status, 200);
    assert.deepEqual(written, ['{"x":1}']);
    const last = rig.worker.operations.at(-1) ?? assert.fail();
    assert.deepEqual(positionOf(last), { ...positionOf(first), answerOffset: 0 });
  });

  test("input that comes while the sandbox is paused waits for it, within a bound, and is then presented for the first time", async () => {
    await using rig = await GatewayRig.start();
    assert.ok(rig.gateway.limits.heldInputMs < continuationWaitMs, "the bridge still remembers");
    rig.routes.answer = () => ({ kind: "not-running" });
    const late = rig.fetch(sendInput, { method: "POST", body: "{}" });
    await rig.routes.asked(1);
    await rig.clock.advance(rig.gateway.limits.heldInputMs + 2000);
    assert.deepEqual([(await late).status, (await late).headers["retry-after"]], [503, "1"]);
    const asked = rig.routes.requests.length;
    const sent = rig.fetch(sendInput, { method: "POST", body: "{}" });
    await rig.routes.asked(asked + 1);
    await rig.clock.advance(5000);
    rig.routes.answer = undefined;
    await rig.clock.advance(2000);
    assert.equal((await sent).status, 200);
    assert.deepEqual(
      rig.worker.operations.map((operation) => positionOf(operation).answerOffset),
      [undefined],
    );
  });

  test("a stream of input goes on at an offset that the bridge can place, and no byte is missing", async () => {
    await using rig = await GatewayRig.start();
    const sent = request({
      host: "127.0.0.1",
      port: rig.port,
      path: "/process.Process/StreamInput",
      method: "POST",
      headers: { ...rig.routing(), "content-type": "application/connect+json" },
      agent: false,
    });
    const answered = once(sent, "response");
    rig.worker.serve = (operation) => operation.proceed();
    const whole = Buffer.alloc(6 * 1024 * 1024);
    for (let at = 0; at < whole.length; at += 4) whole.writeUInt32BE(at, at);
    const half = whole.length / 2;
    sent.write(whole.subarray(0, half));
    await rig.clock.advance(100);
    const first = await rig.worker.operation(0);
    await first.until(() => first.bodyBytes === half);
    const second = rig.worker.operation(1);
    first.stream.reset("epoch-ended");
    await rig.clock.advance(1000);
    const { key, bodyOffset = -1, answerOffset } = positionOf(await second);
    assert.deepEqual([key, answerOffset], [positionOf(first).key, 0]);
    assert.ok(bodyOffset > 0 && bodyOffset <= half - 1024 * 1024, `resent from ${bodyOffset}`);
    sent.end(whole.subarray(half));
    const next = await second;
    await next.until(() => next.bodyEnded);
    assert.equal(bodyOffset + next.bodyBytes, whole.length);
    const kept = next.body;
    assert.deepEqual(kept, whole.subarray(bodyOffset, bodyOffset + kept.length));
    next.admit(200, ["content-type", "application/connect+json"], enveloped("{}", 2));
    const [response]: IncomingMessage[] = await answered;
    assert.equal(await textOf(response ?? assert.fail()), enveloped("{}", 2).toString());
  });
});
