// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { describe, it } from "node:test";

import { overHttp1 } from "./testing/served-api.ts";

describe("a client that misbehaves", () => {
  it("is answered with 408 when its body does not arrive, and cut off when it still does not end", async () => {
    await using api = await overHttp1({});
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nContent-Length: 10\r\n\r\n{",
    );
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    const closed = once(socket, "close");
    while (!text.includes("\r\n\r\n")) {
      await new Promise((resume) => setImmediate(resume));
      api.clock.pass();
    }
    assert.match(text, /^HTTP\/1\.1 408 /);
    api.clock.pass();
    await closed;
  });

  it("that goes away in the middle is heard of, and answered by nobody", async () => {
    await using api = await overHttp1({});
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nContent-Length: 10\r\n\r\n{",
    );
    await once(socket, "connect");
    setImmediate(() => socket.destroy());
    while (api.heard.length === 0) await new Promise((resume) => setImmediate(resume));
    assert.equal(api.heard[0]?.status, 0);
  });

  it("that never stops sending is cut off after a bounded number of bytes", async () => {
    const limits = { bodyBytes: 1 << 10, drainBytes: 64 << 10 };
    await using api = await overHttp1({}, { limits });
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `1000\r\n${" ".repeat(0x1000)}\r\n`;
    let sentBytes = 0;
    while (!socket.destroyed && sentBytes < 64 << 20) {
      socket.write(chunk);
      sentBytes += chunk.length;
      await new Promise((resume) => setImmediate(resume));
    }
    assert(sentBytes < 16 << 20, `${sentBytes} bytes were taken`);
    assert.equal(api.heard[0]?.status, 413);
  });
});
