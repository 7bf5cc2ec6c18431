// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// what of a request's body leaves the gateway, and when; and uploads that are slow, huge, early answered or cut.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import { GatewayRig } from "../src/gateway-rig.ts";

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");
const limitBytes = 64 * 1024;
const post = { method: "POST", path: "/files?path=a" };

function upload(rig: GatewayRig, headers: Record<string, string | number> = {}): ClientRequest {
  return request({
    host: "127.0.0.1",
    port: rig.port,
    ...post,
    headers: { ...rig.routing(), ...headers },
    agent: false,
  });
}

function headText(rig: GatewayRig): string {
  const lines = Object.entries({ host: "localhost", ...rig.routing() });
  return lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
}

async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const [response]: IncomingMessage[] = await once(sent, "response");
  return response ?? assert.fail();
}

test("R-27: a body of 64 KiB goes along with the head, one byte more waits for the admission", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const short = rig.fetch(post.path, { method: "POST", body: Buffer.alloc(limitBytes, 1) });
  const along = await rig.worker.operation(0);
  await along.until(() => along.bodyEnded);
  assert.deepEqual([along.head.awaitAdmission, along.bodyBytes], [undefined, limitBytes]);
  along.admit(200, [], "short");
  assert.equal((await short).body, "short");

  const long = rig.fetch(post.path, { method: "POST", body: Buffer.alloc(limitBytes + 1, 1) });
  const waits = await rig.worker.operation(1);
  assert.equal(waits.head.awaitAdmission, true);
  await rig.settle();
  assert.equal(waits.bodyBytes, 0);
  waits.proceed();
  await waits.until(() => waits.bodyEnded);
  assert.equal(waits.bodyBytes, limitBytes + 1);
  waits.admit(200, [], "long");
  assert.equal((await long).body, "long");
});

test("R-27: another request's leave to send the body is a transport error, and no byte of it leaves", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.stream.sendProceed(`adm_${"z".repeat(26)}`);
  const answer = await rig.fetch(post.path, { method: "POST", body: Buffer.alloc(limitBytes + 1) });
  assert.equal(answer.status, 503);
  const [operation = assert.fail()] = rig.worker.operations;
  assert.deepEqual([operation.bodyBytes, rig.audited[0]?.name], [0, "worker/misbehaved"]);
});

for (const [what, bytes] of [
  ["short", 1000],
  ["long", 300_000],
] as const) {
  test(`R-27: a ${what} body whose request is repaired reaches the right execution whole and the wrong one not at all`, async () => {
    await using rig = await GatewayRig.start();
    const body = Buffer.alloc(bytes, "body");
    await rig.fetch("/files?path=a");
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    rig.worker.serve = (operation) => {
      if (operation.head.capability.endsWith(" 1")) return operation.refreshRoute(fakeIdentity(1n));
      if (operation.head.awaitAdmission === true) operation.proceed();
      void operation.until(() => operation.bodyEnded).then(() => operation.admit(200, [], "done"));
    };
    // The write's own entry, made while the sandbox was still at its first execution.
    rig.routes.answer = (asked, number) => {
      const entry = rig.routes.entry(asked, number);
      if (entry.kind !== "entry" || number !== 1) return entry;
      const route = { ...entry.entry.route, identity: fakeIdentity(1n) };
      return { ...entry, entry: { ...entry.entry, route, capability: "cap 1 1" } };
    };
    const answer = await rig.fetch(post.path, { method: "POST", body });
    assert.equal(answer.body, "done");
    const [, wrong, right] = rig.worker.operations;
    assert.ok(wrong !== undefined && right !== undefined);
    if (bytes > limitBytes) assert.equal(wrong.bodyBytes, 0);
    assert.equal(right.bodyBytes, bytes);
    assert.ok(right.body.equals(body));
  });
}

test("a body of unknown length that comes at once is sent along whole, one that trickles goes ahead head first", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const quick = upload(rig);
  quick.write("a");
  quick.end("b");
  const whole = await rig.worker.operation(0);
  await whole.until(() => whole.bodyEnded);
  assert.deepEqual([whole.head.awaitAdmission, whole.body.toString()], [undefined, "ab"]);
  whole.admit(200, [], "");
  (await answerTo(quick)).resume();

  const slow = upload(rig);
  slow.write("first");
  while (rig.clock.waiting < 3) await new Promise((resolve) => setImmediate(resolve));
  await rig.clock.advance(20);
  const early = await rig.worker.operation(1);
  assert.equal(early.head.awaitAdmission, true);
  early.proceed();
  await early.until(() => early.bodyBytes === 5);
  slow.end("last");
  await early.until(() => early.bodyEnded);
  assert.equal(early.body.toString(), "firstlast");
  early.admit(200, [], "");
  assert.equal((await answerTo(slow)).statusCode, 200);
});

test("a client that asks before it sends (Expect: 100-continue) is told to go on only after the admission", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = () => undefined;
  const sent = upload(rig, { expect: "100-continue", "content-length": 100_000 });
  let continued = false;
  sent.on("continue", () => {
    continued = true;
    sent.end(Buffer.alloc(100_000));
  });
  sent.flushHeaders();
  const operation = await rig.worker.operation(0);
  assert.equal(operation.header("expect"), undefined);
  assert.equal(continued, false);
  operation.proceed();
  await operation.until(() => operation.bodyEnded);
  operation.admit(200, [], "");
  assert.equal((await answerTo(sent)).statusCode, 200);
  assert.equal(operation.bodyBytes, 100_000);
});

test("a client that asks before it sends and is refused is never told to go on", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.deny();
  const sent = upload(rig, { expect: "100-continue", "content-length": 100_000 });
  sent.on("continue", () => assert.fail("told to go on"));
  sent.flushHeaders();
  assert.equal((await answerTo(sent)).statusCode, 403);
  sent.destroy();
});

/** Memory that is in use, not what a collection would free: when that is collected is the engine's business. */
function heldBytes(): number {
  assert.ok(typeof collect === "function");
  collect();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

test("an upload of 100 MB passes with bounded memory, however slowly the guest reads", async () => {
  await using rig = await GatewayRig.start();
  const totalBytes = 100 * 1024 * 1024;
  rig.worker.serve = (operation) => {
    operation.reading = false;
    operation.proceed();
  };
  const sent = upload(rig, { "content-length": totalBytes });
  const chunk = Buffer.alloc(1024 * 1024, 7);
  let written = 0;
  const more = (): void => {
    while (written < totalBytes) {
      written += chunk.length;
      if (!sent.write(chunk)) return;
    }
    sent.end();
  };
  sent.on("drain", more);
  more();
  const operation = await rig.worker.operation(0);
  await operation.until(() => operation.bodyBytes > 0);
  await rig.settle(); // the guest reads nothing: everything that can stall, stalls
  const before = heldBytes();
  assert.ok(
    operation.bodyBytes <= 1024 * 1024,
    `${operation.bodyBytes} bytes were sent to a guest that reads nothing`,
  );
  assert.ok(written < 40 * 1024 * 1024, `${written} bytes were taken from the caller`);
  operation.readOn();
  let peak = 0;
  let looks = 0;
  while (!operation.bodyEnded) {
    const nextLook = operation.bodyBytes + 2 * 1024 * 1024;
    await operation.until(() => operation.bodyEnded || operation.bodyBytes >= nextLook);
    looks += 1;
    peak = Math.max(peak, heldBytes() - before);
  }
  operation.admit(200, [], "");
  assert.equal((await answerTo(sent)).statusCode, 200);
  assert.equal(operation.bodyBytes, totalBytes);
  assert.ok(looks > 20, "memory was looked at while the body passed");
  assert.ok(peak < 16 * 1024 * 1024, `${peak} bytes more at the peak`);
});

test("an answer that comes before the upload is over reaches the caller, and the guest's body is broken off", async () => {
  await using rig = await GatewayRig.start({ limits: { lingerMs: 50 } });
  rig.worker.serve = (operation) => {
    operation.proceed();
    void operation
      .until(() => operation.bodyBytes > 0)
      .then(() => operation.admit(413, ["content-type", "text/plain"], "enough"));
  };
  const socket = connect(rig.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`POST /files?path=a HTTP/1.1\r\n${headText(rig)}transfer-encoding: chunked\r\n\r\n`);
  const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536), Buffer.from("\r\n")]);
  const pump = setInterval(() => socket.write(chunk), 1);
  let answer = "";
  socket.on("data", (bytes: Buffer) => {
    answer += bytes.toString();
  });
  const closed = once(socket, "close");
  const operation = await rig.worker.operation(0);
  await operation.until(() => operation.resetBy !== undefined);
  assert.equal(operation.bodyEnded, false, "half a body never looks whole");
  while (!answer.endsWith("0\r\n\r\n")) await new Promise((resolve) => setImmediate(resolve));
  assert.match(answer, /^HTTP\/1.1 413 .*enough/s);
  assert.equal(socket.closed, false, "it is read on for a while, so that the caller sees the answer");
  await rig.clock.advance(50);
  await closed;
  clearInterval(pump);
  assert.equal(rig.gateway.underWay, 0);
});

test("an early answer whose upload still ends keeps the connection usable", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(403, ["content-length", "2"], "no");
  const socket = connect(rig.port, "127.0.0.1");
  socket.write(`POST /files?path=a HTTP/1.1\r\n${headText(rig)}content-length: 200000\r\n\r\n`);
  const [first] = await once(socket, "data");
  assert.match(String(first), /^HTTP\/1.1 403 /);
  socket.write(Buffer.alloc(200_000));
  rig.worker.serve = (operation) => operation.admit(200, ["content-length", "4"], "next");
  socket.write(`GET /files?path=a HTTP/1.1\r\n${headText(rig)}\r\n`);
  const [second] = await once(socket, "data");
  assert.match(String(second), /^HTTP\/1.1 200 /);
  socket.destroy();
});

test("bodies above the limit are refused, announced or not", async () => {
  await using rig = await GatewayRig.start({ limits: { bodyBytes: 100_000 } });
  const announced = upload(rig, { "content-length": 100_001 });
  announced.on("error", () => undefined);
  announced.flushHeaders();
  assert.equal((await answerTo(announced)).statusCode, 413);
  announced.destroy();
  assert.equal(rig.worker.operations.length, 0);
  rig.worker.serve = (operation) => operation.proceed();
  const unknown = upload(rig);
  unknown.on("error", () => undefined);
  unknown.write(Buffer.alloc(70_000));
  const operation = await rig.worker.operation(0);
  unknown.write(Buffer.alloc(30_001));
  assert.equal((await answerTo(unknown)).statusCode, 413);
  unknown.destroy();
  await operation.until(() => operation.resetBy !== undefined);
  assert.equal(operation.bodyEnded, false);
});

test("a caller that leaves in the middle of an upload breaks it off at the worker, and never ends it", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.proceed();
  const sent = upload(rig, { "content-length": 1_000_000 });
  sent.on("error", () => undefined);
  sent.write(Buffer.alloc(500_000));
  const operation = await rig.worker.operation(0);
  await operation.until(() => operation.bodyBytes > 0);
  sent.destroy();
  await operation.until(() => operation.resetBy !== undefined);
  assert.equal(operation.bodyEnded, false);
  assert.equal(rig.gateway.underWay, 0);
});
