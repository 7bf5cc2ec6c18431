// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isSpaceError } from "@space/model";
import { listeningInode, peerCredentials } from "./unix-peer.ts";

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "peer-"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("R-19 both ends of a Unix socket see the other's process", async () => {
  const path = join(folder, "own");
  const server = createServer().listen(path);
  await once(server, "listening");
  const client = connect(path);
  const [accepted] = (await once(server, "connection")) as [Socket]; // cast: the event's argument
  assert.equal(peerCredentials(client).pid, process.pid);
  assert.equal(peerCredentials(accepted).uid, process.getuid?.());
  assert.match(listeningInode(path) ?? "", /^[0-9]+$/);
  client.destroy();
  accepted.destroy();
  server.close();
});

test("R-19 an impostor that binds the path again shows its own pid", async () => {
  const path = join(folder, "impostor");
  const program = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => console.log("up"))`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const client = connect(path);
  await once(client, "connect");
  assert.equal(peerCredentials(client).pid, child.pid);
  assert.notEqual(peerCredentials(client).pid, process.pid);
  client.destroy();
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("R-19 a closed socket is unverifiable, not verified", () => {
  const socket = connect({ path: join(folder, "nobody") });
  socket.on("error", () => undefined);
  socket.destroy();
  assert.throws(
    () => peerCredentials(socket),
    (error) => isSpaceError(error, "endpoint/unverifiable"),
  );
  assert.equal(listeningInode(join(folder, "nobody")), undefined);
});
