// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Secret } from "@space/model";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { needsRoot as skip } from "../src/needs-root.ts";

const nobody = "i00000000000000000000";
let rig: EmbeddedRig;
let other: Secret<string>;
let sandbox: Sandbox;

before(async () => {
  if (skip !== false) return;
  rig = await startRig();
  other = (await rig.system.createTenant("other")).apiKey;
  sandbox = await Sandbox.create("base", { ...rig.client(), timeoutMs: 300_000 });
  await sandbox.files.write("/home/user/secret.txt", "secret");
});

after(async () => {
  if (skip === false) await rig.end();
});

interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function call(
  path: string,
  { method = "GET", headers = {}, body }: Call,
): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${rig.system.apiUrl}${path}`, {
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

const asTenant = (key: Secret<string>): Record<string, string> => ({
  "x-api-key": key.reveal(),
  "content-type": "application/json",
});
const toGuest = (id: string, token?: string): Record<string, string> => ({
  "e2b-sandbox-id": id,
  "e2b-sandbox-port": "49983",
  ...(token === undefined ? {} : { "x-access-token": token }),
});

test("a missing or wrong key is 401 before anything else", { skip }, async () => {
  const attempts: [string, Call][] = [
    ["/v2/sandboxes", {}],
    [`/sandboxes/${sandbox.sandboxId}`, {}],
    [`/sandboxes/${nobody}`, {}],
    ["/sandboxes", { method: "POST", body: "{" }],
    ["/nowhere", {}],
  ];
  for (const [path, attempt] of attempts) {
    const wrong = { ...attempt, headers: { "x-api-key": `e2b_${"0".repeat(40)}` } };
    assert.equal((await call(path, attempt)).status, 401, path);
    assert.equal((await call(path, wrong)).status, 401, path);
  }
});

test("an unknown sandbox and another tenant's are the same 404", { skip }, async () => {
  const operations: [string, string][] = [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/pause"],
    ["POST", "/timeout"],
    ["POST", "/connect"],
    ["POST", "/resume"],
  ];
  for (const [method, rest] of operations) {
    const init = method === "POST" ? { body: JSON.stringify({ timeout: 10 }) } : {};
    const theirs = await call(`/sandboxes/${sandbox.sandboxId}${rest}`, {
      method,
      headers: asTenant(other),
      ...init,
    });
    const none = await call(`/sandboxes/${nobody}${rest}`, { method, headers: asTenant(other), ...init });
    assert.deepEqual([theirs.status, none.status], [404, 404], `${method} ${rest}`);
    assert.equal(theirs.text.replace(sandbox.sandboxId, nobody), none.text);
  }
  const mine = await call(`/sandboxes/${sandbox.sandboxId}`, { headers: asTenant(rig.system.apiKey) });
  assert.equal(mine.status, 200);
});

test("a bad body is 400 and names the field", { skip }, async () => {
  const bodies: [string, string][] = [
    ['{"templateID": 5}', "templateID"],
    ['{"templateID": "base", "timeout": "soon"}', "timeout"],
    ['{"templateID": "base", "metadata": {"a": 1}}', "metadata"],
    ['{"templateID": "base", "envVars": []}', "envVars"],
  ];
  for (const [body, field] of bodies) {
    const answer = await call("/v2/sandboxes", {
      method: "POST",
      headers: asTenant(rig.system.apiKey),
      body,
    });
    assert.equal(answer.status, 400, body);
    assert.match(answer.text, new RegExp(field), body);
  }
});

test("a guest's agent answers nobody without the sandbox's own token", { skip }, async () => {
  const path = `/files?path=${encodeURIComponent("/home/user/secret.txt")}&username=user`;
  const theirs = await Sandbox.create("base", { ...rig.client(other), timeoutMs: 60_000 });
  const tokens = [undefined, "", "wrong", await rig.accessToken(theirs.sandboxId, other)];
  for (const token of tokens) {
    const answer = await call(path, { headers: toGuest(sandbox.sandboxId, token) });
    assert.equal(answer.status, 401, String(token));
    assert.ok(!answer.text.includes("secret.txt") && !answer.text.includes('"secret"'));
  }
  const mine = await rig.accessToken(sandbox.sandboxId);
  assert.equal((await call(path, { headers: toGuest(sandbox.sandboxId, mine) })).text, "secret");
  await theirs.kill();
});

test("the agent's own control routes and unknown operations do not exist outside", { skip }, async () => {
  const token = await rig.accessToken(sandbox.sandboxId);
  for (const path of ["/init", "/freeze", "/process.Process/Nothing", "//files", "/files/", "/%66iles"]) {
    const answer = await call(path, {
      method: "POST",
      headers: toGuest(sandbox.sandboxId, token),
      body: "{}",
    });
    assert.equal(answer.status, 404, path);
  }
});

test("bodies and heads have limits", { skip }, async () => {
  const huge = JSON.stringify({ templateID: "base", metadata: { a: "x".repeat(2 * 1024 * 1024) } });
  assert.equal(
    (await call("/v2/sandboxes", { method: "POST", headers: asTenant(rig.system.apiKey), body: huge }))
      .status,
    413,
  );
  assert.equal(await rawStatus({ "x-filler": "y".repeat(200_000) }), 431);
});

test("a sandbox that is no more answers 502 as E2B's clients expect", { skip }, async () => {
  const gone = await Sandbox.create("base", { ...rig.client(), timeoutMs: 60_000 });
  const token = await rig.accessToken(gone.sandboxId);
  await gone.kill();
  const answer = await call("/health", { headers: toGuest(gone.sandboxId, token) });
  assert.equal(answer.status, 502);
  assert.deepEqual(JSON.parse(answer.text), {
    sandboxId: gone.sandboxId,
    message: "The sandbox was not found",
    code: 502,
  });
});

/** `fetch` refuses to send such a head. */
function rawStatus(headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((settle, fail) => {
    const sent = request(`${rig.system.apiUrl}/health`, { headers: { ...headers } }, (response) => {
      response.resume();
      settle(response.statusCode ?? 0);
    });
    sent.on("error", fail);
    sent.end();
  });
}
