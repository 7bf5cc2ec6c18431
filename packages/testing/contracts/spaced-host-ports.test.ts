// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { it } from "node:test";
import { HostRig, type RigAnswer, type RigRequest } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const port = 3000;
const http = { purpose: "service-port", port, protocol: "http" } as const;

/** A rig whose guest serves HTTP on the port. */
async function withServer(listener: RequestListener): Promise<{ rig: HostRig; server: Server }> {
  const rig = await HostRig.adopted();
  const server = createServer(listener);
  rig.guest.ports.set(port, (connection) => server.emit("connection", connection));
  return { rig, server };
}

/** A rig whose guest answers every connection to the port with these bytes, whatever is asked. */
async function withBytes(bytes: string): Promise<HostRig> {
  const rig = await HostRig.adopted();
  rig.guest.ports.set(port, (connection) => void connection.once("data", () => connection.end(bytes)));
  return rig;
}

async function finished(
  rig: HostRig,
  method: string,
  path: string,
  request: RigRequest = {},
): Promise<RigAnswer> {
  const answer = rig.open(method, path, { target: http, body: "", ...request });
  await answer.done;
  return answer;
}

it("forwards a request and its answer, heads and bodies", async () => {
  const { rig } = await withServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.writeHead(201, { "x-seen": `${request.method} ${request.url}`, "set-cookie": ["a=1", "b=2"] });
      response.end(JSON.stringify({ headers: request.headers, body: Buffer.concat(chunks).toString() }));
    });
  });
  const answer = await finished(rig, "POST", "/path?q=1", {
    headers: {
      host: "3000-x.example",
      "x-own": "yes",
      "content-length": "4",
      connection: "x-hop",
      "x-hop": "1",
    },
    body: "body",
  });
  assert.equal(answer.status, 201);
  assert.equal(answer.header("x-seen"), "POST /path?q=1");
  assert.deepEqual(
    answer.headers.filter((_, at) => answer.headers[at - 1] === "set-cookie"),
    ["a=1", "b=2"],
  );
  assert.equal(answer.header("connection"), undefined);
  assert.deepEqual(answer.json(), {
    headers: { host: "3000-x.example", "x-own": "yes", "content-length": "4", connection: "close" },
    body: "body",
  });
  rig.close();
});

it("forwards a body of unknown length as it comes", async () => {
  const { rig } = await withServer((request, response) => {
    response.flushHeaders();
    request.pipe(response);
  });
  const answer = rig.open("POST", "/", { target: http });
  answer.stream.send(Buffer.from("one "));
  await settle(60);
  assert.equal(answer.status, 200);
  assert.equal(answer.text, "one ");
  answer.stream.send(Buffer.from("two"));
  answer.stream.end();
  await answer.done;
  assert.equal(answer.text, "one two");
  rig.close();
});

it("says itself, and alone, that a port is closed", async () => {
  const { rig } = await withServer((_request, response) => {
    response.writeHead(502, {
      "space-port-closed": "1",
      "space-admitted": "adm_x",
      "space-verdict": "refresh-route",
    });
    response.end('{"portClosed":true}');
  });
  const closed = await rig.call("GET", "/", {
    target: { purpose: "service-port", port: 81, protocol: "http" },
  });
  assert.deepEqual([closed.status, closed.portClosed], [502, true]);
  assert.deepEqual(closed.json(), {
    sandboxId: rig.sandboxId,
    message: "The sandbox is running but port is not open",
    port: 81,
    code: 502,
  });
  const forged = await finished(rig, "GET", "/");
  assert.deepEqual([forged.status, forged.portClosed], [502, false]);
  assert.deepEqual(
    forged.headers.filter((name) => name.startsWith("space-")),
    [],
  );
  rig.close();
});

it("a guest's broken answers become one error each", async () => {
  for (const bytes of [
    "nonsense\r\n\r\n",
    "HTTP/1.1 999 No\r\n\r\n",
    "",
    `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}\r\n\r\n`,
  ]) {
    const rig = await withBytes(bytes);
    const answer = await finished(rig, "GET", "/");
    assert.equal(answer.status, 502, bytes.slice(0, 20));
    assert.equal(answer.portClosed, false);
    assert.equal((await rig.call("GET", "/health")).status, 204);
    rig.close();
  }
  const unasked = await withBytes(
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
  );
  assert.equal((await finished(unasked, "GET", "/")).status, 502);
  unasked.close();
  const short = await withBytes("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
  const answer = await finished(short, "GET", "/");
  assert.deepEqual([answer.status, answer.ended, answer.reset], [200, false, "guest closed"]);
  short.close();
});

it("a guest's 421 is an answer like any other", async () => {
  const rig = await withBytes("HTTP/1.1 421 Misdirected Request\r\ncontent-length: 0\r\n\r\n");
  assert.equal((await finished(rig, "GET", "/")).status, 421);
  rig.close();
});

it("an answer goes at its reader's pace", async () => {
  let taken = 0;
  const { rig } = await withServer((_request, response) => {
    const chunk = Buffer.alloc(64 * 1024);
    const pour = (): void => {
      while (taken < 200 && response.write(chunk)) taken += 1;
      if (taken < 200) response.once("drain", pour);
      else response.end();
      taken += 1;
    };
    pour();
  });
  const answer = rig.open("GET", "/", { target: http, body: "" });
  answer.reading = false;
  await settle(300);
  assert.ok(answer.body.length < 1_500_000 && taken < 60, `${taken} chunks were taken`);
  answer.read();
  await answer.done;
  assert.ok(answer.body.length > 10_000_000);
  rig.close();
});

it("a caller that leaves closes the guest's connection, and each request has its own", async () => {
  const connections: Duplex[] = [];
  const { rig, server } = await withServer(() => undefined);
  server.on("connection", (connection: Duplex) => connections.push(connection));
  const waiting = rig.open("GET", "/", { target: http, body: "" });
  rig.open("GET", "/", { target: http, body: "" });
  await settle(60);
  assert.equal(connections.length, 2);
  waiting.stream.reset("left");
  await settle(60);
  assert.equal(connections[0]?.destroyed || connections[0]?.readableEnded, true);
  assert.equal(connections[1]?.destroyed, false);
  rig.close();
});

it("relays an upgrade: the head, then bytes both ways", async () => {
  const { rig, server } = await withServer((_request, response) => void response.end());
  server.on("upgrade", (request, socket: Duplex) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${request.headers["sec-websocket-key"]}\r\n\r\nhello`,
    );
    socket.on("data", (chunk: Buffer) => socket.write(Buffer.from(chunk.toString().toUpperCase())));
  });
  const answer = rig.open("GET", "/ws", {
    target: { purpose: "service-port", port, protocol: "websocket" },
    headers: { "sec-websocket-key": "k", host: "h" }, // as they come: without those of one hop
  });
  await settle(60);
  assert.equal(answer.status, 101);
  assert.equal(answer.header("upgrade"), undefined);
  assert.equal(answer.header("sec-websocket-accept"), "k");
  answer.stream.send(Buffer.from("ping"));
  await settle(60);
  assert.equal(answer.text, "helloPING");
  rig.guest.die();
  rig.close();
});

it("relays raw bytes, and each direction's end", async () => {
  const rig = await HostRig.adopted();
  const received: string[] = [];
  rig.guest.ports.set(port, (connection) => {
    connection.on("data", (chunk: Buffer) => received.push(chunk.toString()));
    connection.on("end", () => connection.end("bye"));
  });
  const answer = rig.open("GET", "/", { target: { purpose: "service-port", port, protocol: "tcp" } });
  await settle();
  assert.deepEqual([answer.status, answer.headers], [200, []]);
  answer.stream.send(Buffer.from("hi"));
  await settle();
  assert.deepEqual(received, ["hi"]);
  answer.stream.end();
  await settle(60);
  assert.deepEqual([answer.text, answer.ended, answer.reset], ["bye", true, undefined]);
  rig.close();
});
