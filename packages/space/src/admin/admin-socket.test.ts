// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SpaceError } from "@space/model";
import { type AdminHandler, askAdmin, serveAdmin } from "./admin-socket.ts";

async function open(context: TestContext, handler: AdminHandler): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "admin-"));
  const path = join(folder, "socket");
  const server = await serveAdmin(path, handler, { record: () => undefined });
  context.after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  return path;
}

async function say(path: string, text: string): Promise<string> {
  const socket = connect(path);
  await once(socket, "connect");
  socket.on("error", () => undefined);
  socket.write(text);
  let answer = "";
  for await (const bytes of socket) answer += String(bytes);
  return answer;
}

test("an operator's request is answered over a socket that only its owner may open", async (context) => {
  const path = await open(context, async (method, params) => ({ method, params }));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const answer = await askAdmin(path, "keys/list", { a: 1 });
  assert.deepEqual(answer, { value: { method: "keys/list", params: { a: 1 } } });
});

test("a failure comes as its code and details, and a bug as no more than that", async (context) => {
  const path = await open(context, async (method) => {
    throw method === "known"
      ? new SpaceError("signing-key/unknown", { kid: "k" })
      : new TypeError("secret text");
  });
  await assert.rejects(askAdmin(path, "known", {}), { code: "signing-key/unknown", details: { kid: "k" } });
  await assert.rejects(askAdmin(path, "bug", {}), { code: "internal/bug" });
  assert.doesNotMatch(await say(path, '{"method":"bug","params":{}}\n'), /secret text/);
});

test("what is no request is refused in bounded memory", async (context) => {
  const path = await open(context, async () => "never");
  for (const text of ["\n", "{}\n", "[]\n", '{"method":1}\n', "\u0000\n"])
    assert.match(await say(path, text), /input\/invalid/, JSON.stringify(text));
  assert.match(await say(path, "x".repeat(70_000)), /input\/too-large/);
});

test("where nobody listens there is no answer, and no error", async (context) => {
  const path = await open(context, async () => "x");
  assert.equal(await askAdmin(`${path}.other`, "keys/list", {}), undefined);
});
