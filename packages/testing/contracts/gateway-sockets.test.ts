// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// WebSockets to a user's port, and connections that speak something else or badly.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectSecurely } from "node:tls";
import { fakeIdentity, fakeSandboxId } from "../src/fake-route-source.ts";
import { GatewayRig } from "../src/gateway-rig.ts";

const handshake = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};
const accept = ["sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="];

/** A raw connection that keeps what it receives. */
class RawClient {
  readonly socket: Socket;
  text = "";

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      this.text += bytes.toString("latin1");
    });
  }

  send(method: string, path: string, headers: Record<string, string>, rest = ""): void {
    const lines = Object.entries({ host: "localhost", ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${rest}`);
  }

  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text) && !this.socket.closed)
      await new Promise((resolve) => setImmediate(resolve));
    assert.match(this.text, pattern);
  }

  async closed(): Promise<void> {
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once("close", resolve));
  }
}

const dial = (rig: GatewayRig, allowHalfOpen = false): RawClient =>
  new RawClient(connect({ port: rig.port, host: "127.0.0.1", allowHalfOpen }));

test("a WebSocket's bytes pass both ways, the first ones too, and each half ends by itself", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(101, accept);
  const client = dial(rig, true);
  client.send("GET", "/ws?x", { ...rig.routing(3000), ...handshake }, "early");
  await client.until(/^HTTP\/1\.1 101 Switching Protocols\r\n.*sec-websocket-accept: s3pP.*\r\n\r\n$/s);
  assert.match(client.text, /connection: Upgrade\r\nupgrade: websocket\r\n/);
  const [operation = assert.fail()] = rig.worker.operations;
  assert.deepEqual(operation.head.target, { purpose: "service-port", port: 3000, protocol: "websocket" });
  assert.equal(operation.head.awaitAdmission, undefined);
  assert.equal(operation.header("sec-websocket-key"), handshake["sec-websocket-key"]);
  assert.deepEqual([operation.header("upgrade"), operation.header("connection")], [undefined, undefined]);
  client.socket.write(" later");
  await operation.until(() => operation.body.toString() === "early later");
  operation.stream.send(Buffer.from("down"));
  await client.until(/down$/);
  operation.stream.end();
  await once(client.socket, "end");
  client.socket.end("last");
  await operation.until(() => operation.bodyEnded);
  assert.equal(operation.body.toString(), "early laterlast");
  await client.closed();
  while (rig.gateway.underWay > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("nothing of a WebSocket's bytes leaves before it is accepted, and a repair still works", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => {
    if (operation.head.capability.endsWith(" 2")) return operation.admit(101, accept);
    rig.routes.identities.set(fakeSandboxId, fakeIdentity(2n));
    operation.refreshRoute(fakeIdentity(1n));
  };
  const client = dial(rig);
  client.send("GET", "/", { ...rig.routing(3000), ...handshake }, "early");
  await client.until(/ 101 /);
  const [wrong = assert.fail(), right = assert.fail()] = rig.worker.operations;
  await right.until(() => right.bodyBytes === 5);
  assert.equal(wrong.bodyBytes, 0);
  client.socket.destroy();
  await right.until(() => right.resetBy !== undefined || right.bodyEnded);
});

test("a WebSocket that the guest or the gateway refuses is an ordinary answer", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(403, ["content-length", "2"], "no");
  const guest = dial(rig, true);
  guest.send("GET", "/", { ...rig.routing(3000), ...handshake });
  await guest.until(/^HTTP\/1\.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno$/);
  await once(guest.socket, "end");
  await rig.clock.advance(rig.gateway.limits.lingerMs);
  while (!guest.socket.closed) {
    guest.socket.write("does not leave");
    await new Promise((resolve) => setImmediate(resolve));
  }
  rig.worker.serve = (operation) => operation.fail("sandbox/port-closed");
  const closed = dial(rig);
  closed.send("GET", "/", { ...rig.routing(3000), ...handshake });
  await closed.until(/^HTTP\/1\.1 502 .*"port":3000/s);
  const agent = dial(rig);
  agent.send("GET", "/files?path=a", { ...rig.routing(), ...handshake });
  await agent.until(/^HTTP\/1\.1 404 /);
  const nowhere = dial(rig);
  nowhere.send("GET", "/", { host: "api.sbx.test", ...handshake });
  await nowhere.until(/^HTTP\/1\.1 404 /);
  const posted = dial(rig);
  posted.send("POST", "/", { ...rig.routing(3000), ...handshake });
  await posted.until(/^HTTP\/1\.1 400 /);
  assert.equal(rig.worker.operations.length, 2);
});

test("a worker's reset cuts a WebSocket, a caller's leaving resets the stream", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(101, accept);
  const cut = dial(rig);
  cut.send("GET", "/", { ...rig.routing(3000), ...handshake });
  await cut.until(/ 101 /);
  rig.worker.operations[0]?.stream.reset("epoch-ended");
  await cut.closed();
  const leaves = dial(rig);
  leaves.send("GET", "/", { ...rig.routing(3000), ...handshake });
  await leaves.until(/ 101 /);
  leaves.socket.resetAndDestroy();
  const [, operation = assert.fail()] = rig.worker.operations;
  await operation.until(() => operation.resetBy !== undefined);
  assert.equal(rig.gateway.underWay, 0);
});

test("R-22: a WebSocket is never continued: it hears 1012 where a frame may stand, and in the middle of one it breaks off", async () => {
  await using rig = await GatewayRig.start();
  const close = Buffer.from([0x88, 2, 0x03, 0xf4]).toString("latin1");
  for (const [sent, reason, closes] of [
    [[0x82, 2, 1, 2], "epoch-ended", true],
    [[0x82, 2, 1, 2], "closing", true],
    [[0x82, 2, 1, 2], "transport", true],
    [[0x82, 2, 1], "epoch-ended", false],
    [[0x82, 2, 1, 2], "execution-gone", false],
  ] as const) {
    rig.worker.serve = (operation) => operation.admit(101, accept);
    const client = dial(rig);
    client.socket.on("error", () => undefined);
    client.send("GET", "/", { ...rig.routing(3000), ...handshake });
    await client.until(/ 101 /);
    const operation = rig.worker.operations.at(-1) ?? assert.fail();
    const count = rig.worker.operations.length;
    operation.stream.send(Buffer.from(sent));
    await rig.settle();
    operation.stream.reset(reason);
    await client.closed();
    assert.equal(client.text.endsWith(close), closes, reason);
    await rig.clock.advance(5000);
    assert.equal(rig.worker.operations.length, count, "nothing was presented again");
  }
});

test("a slow WebSocket reader stops its worker, and no one else", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(101, accept);
  const client = dial(rig);
  client.send("GET", "/", { ...rig.routing(3000), ...handshake });
  await client.until(/ 101 /);
  client.socket.pause();
  const [operation = assert.fail()] = rig.worker.operations;
  let sent = 0;
  for (let stalled = false; !stalled; ) {
    sent += operation.sendUntilFull(Buffer.alloc(256 * 1024), 64 * 1024 * 1024);
    const drained = operation.drained().then(() => false);
    stalled = await Promise.race([drained, rig.settle().then(() => true)]);
  }
  assert.ok(sent < 24 * 1024 * 1024, `${sent} bytes went to a caller that reads nothing`);
  client.socket.resume();
  await operation.drained();
  client.socket.destroy();
});

test("another upgrade than a WebSocket's is served as if it had not been asked for", async () => {
  await using rig = await GatewayRig.start();
  const client = dial(rig);
  const asking = {
    connection: "Upgrade, HTTP2-Settings",
    upgrade: "h2c",
    "http2-settings": "AAMAAABkAAQAAP__",
  };
  client.send("GET", "/files?path=a", { ...rig.routing(), ...asking });
  await client.until(/^HTTP\/1\.1 200 .*ok/s);
  client.socket.destroy();
});

test("a WebSocket over TLS", async () => {
  await using rig = await GatewayRig.start({ secure: true });
  rig.worker.serve = (operation) => operation.admit(101, accept);
  const options = {
    host: "127.0.0.1",
    port: rig.port,
    ca: rig.authorityCertificate,
    ALPNProtocols: ["http/1.1"],
  };
  const client = new RawClient(connectSecurely(options));
  client.send("GET", "/", { host: `3000-${fakeSandboxId}.sbx.test`, ...handshake });
  await client.until(/^HTTP\/1\.1 101 /);
  rig.worker.operations[0]?.stream.send(Buffer.from("down"));
  await client.until(/down$/);
  client.socket.destroy();
});

test("a tunnel is refused", async () => {
  await using rig = await GatewayRig.start();
  const client = dial(rig);
  client.send("CONNECT", "evil.example:443", {});
  await client.until(/^HTTP\/1\.1 405 /);
  await client.closed();
});

test("what cannot be read is refused, and never after an answer on the same connection", async () => {
  await using rig = await GatewayRig.start({ limits: { headerBytes: 8192 } });
  const broken = dial(rig);
  broken.socket.write("NONSENSE\r\n\r\n");
  await broken.until(/^HTTP\/1\.1 400 Bad Request\r\n/);
  await broken.closed();
  const long = dial(rig);
  long.send("GET", "/", { ...rig.routing(), x: "x".repeat(10_000) });
  await long.until(/^HTTP\/1\.1 431 /);
  const later = dial(rig);
  later.send("GET", "/files?path=a", rig.routing());
  await later.until(/ok/);
  const answered = later.text.length;
  later.socket.write("NONSENSE\r\n\r\n");
  await later.closed();
  assert.equal(later.text.slice(answered).includes("HTTP/1.1"), false);
});

test("a request with two lengths, or a length and chunks, is refused: nobody else's request can be hidden in it", async () => {
  await using rig = await GatewayRig.start();
  for (const lines of [
    "content-length: 3\r\ncontent-length: 4\r\n",
    "content-length: 3\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding: chunked, identity\r\n",
    "content-length: +3\r\n",
    "content-length : 3\r\n",
  ]) {
    const client = dial(rig);
    const head = Object.entries(rig.routing())
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    client.socket.write(`POST /files?path=a HTTP/1.1\r\nhost: localhost\r\n${head}${lines}\r\nabc`);
    await client.until(/^HTTP\/1\.1 400 /);
    client.socket.destroy();
  }
  assert.equal(rig.worker.operations.length, 0);
});
