// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Answers that stream: slow readers, callers that leave, workers that break off; over HTTP/1 and HTTP/2.

import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { request as secureRequest } from "node:https";
import { test } from "node:test";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import { GatewayRig, textOf } from "../src/gateway-rig.ts";

async function open(rig: GatewayRig, path: string): Promise<IncomingMessage> {
  const sent = get({ host: "127.0.0.1", port: rig.port, path, headers: rig.routing(), agent: false });
  const [response]: IncomingMessage[] = await once(sent, "response");
  return response ?? assert.fail();
}

/** An HTTP/2 session with the rig, closed when the test ends. */
async function session(rig: GatewayRig): Promise<ClientHttp2Session & AsyncDisposable> {
  const client = connect(`https://127.0.0.1:${rig.port}`, { ca: rig.authorityCertificate });
  await once(client, "connect");
  client.on("error", () => undefined);
  return Object.assign(client, {
    async [Symbol.asyncDispose]() {
      client.destroy();
    },
  });
}

function stream(client: ClientHttp2Session, head: Record<string, string>, end = true): ClientHttp2Stream {
  const authority = `49983-${fakeSandboxId}.sbx.test`;
  const sent = client.request(
    { ":authority": authority, "x-access-token": "token", ...head },
    { endStream: end },
  );
  sent.on("error", () => undefined);
  return sent;
}

async function statusOf(sent: ClientHttp2Stream): Promise<number | undefined> {
  const [headers]: Record<string, number>[] = await once(sent, "response");
  return headers?.[":status"];
}

test("the head of an answer reaches the caller before its first byte does", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200, ["content-type", "application/connect+json"]);
  const response = await open(rig, "/files?path=a");
  assert.equal(response.headers["content-type"], "application/connect+json");
  rig.worker.operations[0]?.stream.end();
  assert.equal(await textOf(response), "");
});

test("a slow reader holds up its own answer alone, and takes bounded memory", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200);
  const slow = await open(rig, "/files?path=big");
  const operation = await rig.worker.operation(0);
  const chunk = Buffer.alloc(256 * 1024, 1);
  let sent = 0;
  let received = 0;
  // Nobody reads: the worker is stopped by the stream's window once the sockets' buffers are full.
  for (let stalled = false; !stalled; ) {
    sent += operation.sendUntilFull(chunk, 64 * 1024 * 1024);
    const drained = operation.drained();
    stalled = await Promise.race([drained.then(() => false), rig.settle().then(() => true)]);
  }
  assert.ok(sent < 24 * 1024 * 1024, `${sent} bytes went to a caller that reads nothing`);
  rig.worker.serve = (other) => other.admit(200, [], "quick");
  assert.equal((await rig.fetch("/files?path=small")).body, "quick");
  slow.on("data", (bytes: Buffer) => {
    received += bytes.length;
  });
  await operation.drained();
  operation.stream.end();
  await once(slow, "end");
  assert.equal(received, sent);
});

test("a caller that leaves ends the operation at the worker", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200);
  const response = await open(rig, "/files?path=a");
  response.on("error", () => undefined);
  response.destroy();
  const operation = await rig.worker.operation(0);
  await operation.until(() => operation.resetBy !== undefined);
  assert.equal(rig.gateway.underWay, 0);
});

test("a caller that leaves while its route is looked up leaves nothing behind", async () => {
  await using rig = await GatewayRig.start();
  rig.routes.hold();
  const sent = get({
    host: "127.0.0.1",
    port: rig.port,
    path: "/files?path=a",
    headers: rig.routing(),
    agent: false,
  });
  sent.on("error", () => undefined);
  await rig.routes.asked(1);
  sent.destroy();
  while (rig.gateway.underWay > 0) await new Promise((resolve) => setImmediate(resolve));
  rig.routes.release();
  await rig.clock.advance(1);
  assert.equal(rig.worker.operations.length, 0);
});

test("HTTP/1: a worker's reset in mid-answer destroys the connection", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => {
    operation.admit(200);
    operation.stream.send(Buffer.from("half"));
  };
  const response = await open(rig, "/files?path=a");
  const operation = await rig.worker.operation(0);
  await once(response, "readable");
  operation.stream.reset("epoch-ended");
  await assert.rejects(textOf(response), { code: "ECONNRESET" });
});

test("HTTP/2: a worker's reset in mid-answer is RST_STREAM with INTERNAL_ERROR, and others go on (e2b-compat 3.3)", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  rig.worker.serve = (operation) => operation.admit(200);
  await using client = await session(rig);
  const broken = stream(client, { ":path": "/files?path=a" });
  const whole = stream(client, { ":path": "/files?path=a" });
  assert.deepEqual(await Promise.all([statusOf(broken), statusOf(whole)]), [200, 200]);
  const [first = assert.fail(), second = assert.fail()] = rig.worker.operations;
  first.stream.send(Buffer.from("half"));
  await once(broken, "data");
  let ended = false;
  broken.on("end", () => {
    ended = broken.rstCode === 0;
  });
  const closed = new Promise((resolve) => broken.once("close", resolve));
  first.stream.reset("epoch-ended");
  await closed;
  assert.equal(broken.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  assert.equal(ended, false);
  second.stream.send(Buffer.from("rest"));
  second.stream.end();
  assert.equal(await textOf(whole), "rest");
});

test("HTTP/2: a whole exchange, repeated headers and a body of unknown length included", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  rig.worker.serve = (operation) =>
    void operation
      .until(() => operation.bodyEnded)
      .then(() =>
        operation.admit(201, ["set-cookie", "a=1", "set-cookie", "b=2", "set-cookie", "c=3"], "made"),
      );
  await using client = await session(rig);
  const sent = stream(client, { ":path": "/files?path=a", ":method": "POST", cookie: "x=1; y=2" }, false);
  sent.end("body");
  const [headers] = await once(sent, "response");
  assert.deepEqual([headers[":status"], headers["set-cookie"]], [201, ["a=1", "b=2", "c=3"]]);
  assert.equal(await textOf(sent), "made");
  const [operation = assert.fail()] = rig.worker.operations;
  assert.equal(operation.body.toString(), "body");
  assert.equal(operation.header("host"), `49983-${fakeSandboxId}.sbx.test`);
  assert.equal(operation.header("cookie"), "x=1; y=2");
  assert.equal(
    operation.head.headers.some((name) => name.startsWith(":")),
    false,
  );
});

test("HTTP/2: a caller that resets its upload breaks it off at the worker, and never ends it", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  rig.worker.serve = (operation) => operation.proceed();
  await using client = await session(rig);
  const known = { "content-length": "300000" };
  const leave: readonly (readonly [object, (sent: ClientHttp2Stream) => void])[] = [
    [{}, (sent) => sent.destroy()],
    [known, (sent) => sent.destroy()],
    // node's client ends the body before it resets: only an announced length shows that it is not whole.
    [known, (sent) => sent.close(constants.NGHTTP2_CANCEL)],
    [known, (sent) => sent.close(constants.NGHTTP2_NO_ERROR)],
    [known, (sent) => sent.close(constants.NGHTTP2_INTERNAL_ERROR)],
  ];
  for (const [at, [headers, going]] of leave.entries()) {
    const sent = stream(client, { ":path": "/files?path=a", ":method": "POST", ...headers }, false);
    sent.write(Buffer.alloc(200_000));
    const operation = await rig.worker.operation(rig.worker.operations.length);
    await operation.until(() => operation.bodyBytes > 0);
    going(sent);
    await operation.until(() => operation.resetBy !== undefined || operation.bodyEnded);
    assert.equal(operation.bodyEnded, false, `way ${at}`);
  }
  assert.equal(rig.gateway.underWay, 0);
});

test("HTTP/2: an early answer ends the upload without an error, after the caller had time to see it", async () => {
  await using rig = await GatewayRig.start({ secure: true, limits: { lingerMs: 50 } });
  rig.worker.serve = (operation) => operation.deny();
  await using client = await session(rig);
  const sent = stream(client, { ":path": "/files?path=a", ":method": "POST" }, false);
  sent.write(Buffer.alloc(200_000));
  assert.equal(await statusOf(sent), 403);
  assert.match(await textOf(sent), /forbidden/);
  const closed = once(sent, "close");
  await rig.clock.advance(50);
  await closed;
  assert.equal(sent.rstCode, constants.NGHTTP2_NO_ERROR);
});

test("HTTP/2: a repair, a refusal and HEAD look as over HTTP/1", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  await using client = await session(rig);
  rig.worker.serve = (operation) => {
    if (operation.head.capability.endsWith(" 2")) return operation.admit(200, ["content-length", "2"], "ok");
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    operation.refreshRoute(fakeIdentity(1n));
  };
  assert.equal(await textOf(stream(client, { ":path": "/files?path=a" })), "ok");
  const head = stream(client, { ":path": "/files?path=a", ":method": "HEAD" });
  assert.equal(await statusOf(head), 200);
  assert.equal(await textOf(head), "");
  const unknown = stream(client, { ":path": "/init", ":method": "POST" });
  assert.equal(await statusOf(unknown), 404);
  unknown.resume();
  const tunnel = client.request({ ":method": "CONNECT", ":authority": "evil.example:443" });
  tunnel.on("error", () => undefined);
  assert.equal(await statusOf(tunnel), 405);
});

test("the secure port serves HTTP/1 too", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  const sent = secureRequest({
    host: "127.0.0.1",
    port: rig.port,
    path: "/files?path=a",
    ca: rig.authorityCertificate,
    headers: { host: `49983-${fakeSandboxId}.sbx.test`, "x-access-token": "token" },
    agent: false,
  });
  sent.end();
  const [response]: IncomingMessage[] = await once(sent, "response");
  assert.equal(await textOf(response ?? assert.fail()), "ok");
  assert.equal(response?.httpVersion, "1.1");
});
