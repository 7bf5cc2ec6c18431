// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { until } from "../src/space-process.ts";

const port = 8000;
/** Switches to a protocol of its own that answers in capitals, or refuses to; and keeps what it was asked. */
const server = `
import socket, threading
def serve(connection):
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += connection.recv(4096)
    open("/home/user/heads", "ab").write(head)
    if b"/refused" in head or b"upgrade: websocket" not in head.lower():
        connection.sendall(b"HTTP/1.1 403 Forbidden\\r\\ncontent-length: 2\\r\\n\\r\\nno")
        connection.close()
        return
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: Upgrade\\r\\nsec-websocket-accept: x\\r\\n\\r\\nhello ")
    while True:
        received = connection.recv(4096)
        if not received: break
        connection.sendall(received.upper())
    connection.close()
listener = socket.socket()
listener.bind(("127.0.0.1", ${port}))
listener.listen(50)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`;

import { needsRoot as skip } from "../src/needs-root.ts";

let rig: EmbeddedRig;
let sandbox: Sandbox;

before(async () => {
  if (skip !== false) return;
  rig = await startRig();
  sandbox = await Sandbox.create("base", { ...rig.client(), timeoutMs: 300_000 });
  await sandbox.files.write("/home/user/server.py", server);
  await sandbox.commands.run("python3 /home/user/server.py", { background: true });
  const headers = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": String(port) };
  await until(
    "the server listens",
    async () => (await fetch(`${rig.system.apiUrl}/ready`, { headers })).status === 403,
  );
});

after(async () => {
  if (skip === false) await rig.end();
});

/** Sends a handshake, then `more` once `expected` has come; resolves with all that came when `last` has. */
function shake(path: string, more: string, last: string): Promise<string> {
  const { hostname, port: gatewayPort, host } = new URL(rig.system.apiUrl);
  const socket = connect(Number(gatewayPort), hostname);
  let text = "";
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `host: ${host}`,
      `e2b-sandbox-id: ${sandbox.sandboxId}`,
      `e2b-sandbox-port: ${port}`,
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      "sec-websocket-version: 13",
      "\r\n",
    ].join("\r\n"),
  );
  let sent = false;
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => socket.destroy(new Error(`only: ${text}`)), 10_000);
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      if (!sent && text.includes("hello ")) socket.write(more);
      sent ||= text.includes("hello ");
      if (text.endsWith(last)) socket.end();
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(limit);
      resolve(text);
    });
  });
}

test("a WebSocket handshake reaches the guest's server, and then bytes flow both ways", {
  skip,
}, async () => {
  const text = await shake("/socket", "ping", "PING");
  const [head = "", body] = text.split("\r\n\r\n");
  assert.match(head, /^HTTP\/1\.1 101 /);
  assert.deepEqual(head.match(/^(upgrade|connection):.*$/gim), ["connection: Upgrade", "upgrade: websocket"]);
  assert.match(head, /^sec-websocket-accept: x$/m);
  assert.equal(body, "hello PING");
  const asked = await sandbox.files.read("/home/user/heads");
  const handshake = asked.slice(asked.indexOf("GET /socket"));
  assert.equal(handshake.match(/^upgrade: websocket\r$/gim)?.length, 1);
  assert.match(handshake, /^sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r$/m);
  assert.ok(!/transfer-encoding|content-length/i.test(handshake));
});

test("a handshake that the guest's server refuses is answered as it answers", { skip }, async () => {
  const text = await shake("/refused", "", "\r\n\r\nno");
  assert.match(text, /^HTTP\/1\.1 403 /);
  assert.match(text, /no$/);
});
