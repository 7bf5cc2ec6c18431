// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The gateway's front door: which requests reach a sandbox, which the API, and what the rest is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SpaceError } from "@space/model";
import { fakeSandboxId } from "../src/fake-route-source.ts";
import { GatewayRig } from "../src/gateway-rig.ts";

test("a request travels with its capability, a fresh admission id and nothing of the platform's", async () => {
  await using rig = await GatewayRig.start();
  const answer = await rig.fetch("/files?path=a", {
    headers: { ...rig.routing(), "x-api-key": "secret", authorization: "Basic dXNlcjo=", range: "bytes=0-1" },
  });
  assert.deepEqual([answer.status, answer.body], [200, "ok"]);
  const [{ head } = assert.fail()] = rig.worker.operations;
  assert.equal(head.sandbox, fakeSandboxId);
  assert.equal(head.capability, "cap 0 1");
  assert.deepEqual(head.target, { purpose: "control" });
  assert.deepEqual([head.method, head.path], ["GET", "/files?path=a"]);
  assert.match(head.admission, /^adm_[a-z2-7]{26}$/);
  const { headers } = head;
  assert.equal(headers[headers.indexOf("authorization") + 1], "Basic dXNlcjo=");
  for (const name of ["x-api-key", "x-access-token", "e2b-sandbox-id", "connection"])
    assert.equal(headers.includes(name), false, name);
});

test("each request has its own admission id (R-14)", async () => {
  await using rig = await GatewayRig.start();
  for (let count = 0; count < 3; count += 1) await rig.fetch("/files?path=a");
  assert.equal(new Set(rig.worker.operations.map(({ head }) => head.admission)).size, 3);
});

test("a port of the user's is reached by host or header, without the caller's token", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/x?y", { headers: { host: `8080-${fakeSandboxId}.sbx.test` } });
  await rig.fetch("/x?y", { headers: rig.routing(3000) });
  const [byHost, byHeader] = rig.worker.operations;
  assert.deepEqual(byHost?.head.target, { purpose: "service-port", port: 8080, protocol: "http" });
  assert.equal(byHost?.header("host"), `8080-${fakeSandboxId}.sbx.test`);
  assert.deepEqual(byHeader?.head.target, { purpose: "service-port", port: 3000, protocol: "http" });
  assert.equal(byHeader?.header("x-access-token"), undefined);
  assert.equal(rig.routes.requests[1]?.credential.kind, "none");
});

test("everything else is the API's", async () => {
  await using rig = await GatewayRig.start();
  for (const headers of [{}, { host: "api.sbx.test" }, { host: "sbx.test" }]) {
    const answer = await rig.fetch("/health", { headers });
    assert.deepEqual([answer.status, answer.body], [200, "api"]);
  }
  assert.equal(rig.gateway.counts.requests, 0);
});

test("the agent's own controls and whatever is in no table do not exist outside (R-8)", async () => {
  await using rig = await GatewayRig.start();
  for (const path of [
    "/init",
    "/freeze",
    "/unfreeze",
    "/collapse",
    "/upgrade",
    "/files/../init",
    "//init",
    "/files/",
    "/nothing",
  ])
    for (const method of ["GET", "POST"]) assert.equal((await rig.fetch(path, { method })).status, 404, path);
  assert.equal(rig.routes.requests.length, 0);
});

test("absent credentials are refused before anything is looked up (incident 25)", async () => {
  await using rig = await GatewayRig.start();
  const { "x-access-token": _token, ...headers } = rig.routing();
  const answer = await rig.fetch("/process.Process/Start", { method: "POST", headers });
  assert.deepEqual([answer.status, JSON.parse(answer.body).code], [401, 401]);
  assert.equal(rig.routes.requests.length, 0);
  assert.equal((await rig.fetch("/health", { headers })).status, 200);
});

test("what the control plane says of the caller is told in the words that clients know", async () => {
  await using rig = await GatewayRig.start();
  rig.routes.answer = () => ({ kind: "unauthenticated", problem: "wrong" });
  assert.equal((await rig.fetch("/files?path=a")).status, 401);
  rig.routes.answer = () => ({ kind: "unauthenticated", problem: "signature-expired" });
  const { "x-access-token": _token, ...headers } = rig.routing();
  const expired = await rig.fetch("/files?path=a&signature=s&signature_expiration=1", { headers });
  assert.equal(expired.status, 401);
  assert.deepEqual(JSON.parse(expired.body), { code: 401, message: "signature is already expired" });
  for (const kind of ["not-found", "not-running"] as const) {
    rig.routes.answer = () => ({ kind });
    const gone = await rig.fetch("/files?path=a");
    assert.equal(gone.status, 502);
    assert.deepEqual(JSON.parse(gone.body), {
      sandboxId: fakeSandboxId,
      message: "The sandbox was not found",
      code: 502,
    });
  }
});

test("a control plane that cannot be asked is a 503, never a 404 or 502 (incident 26)", async () => {
  await using rig = await GatewayRig.start();
  rig.routes.answer = () => Promise.reject(new SpaceError("store/failed", { step: "read" }));
  const answer = await rig.fetch("/files?path=a");
  assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
  rig.routes.answer = undefined;
  rig.routes.hold();
  const late = rig.fetch("/files?path=a");
  await rig.routes.asked(2);
  await rig.clock.advance(30_000);
  assert.equal((await late).status, 503);
  rig.routes.release();
});

test("a closed port is told with its number, to a browser as a page", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.fail("sandbox/port-closed");
  const answer = await rig.fetch("/", { headers: rig.routing(3000) });
  assert.equal(answer.status, 502);
  assert.deepEqual(JSON.parse(answer.body), {
    sandboxId: fakeSandboxId,
    message: "The sandbox is running but port is not open",
    port: 3000,
    code: 502,
  });
  const headers = { ...rig.routing(3000), "user-agent": "Mozilla/5.0", accept: "text/html" };
  const page = await rig.fetch("/", { headers });
  assert.equal(page.status, 502);
  assert.match(page.headers["content-type"] ?? "", /^text\/html/);
  assert.match(page.body, /port is not open/);
});

test("bad hosts, ids, ports, paths and doubled headers are 400", async () => {
  await using rig = await GatewayRig.start();
  const cases: Record<string, string>[] = [
    { host: `0-${fakeSandboxId}.sbx.test` },
    { host: `99999-${fakeSandboxId}.sbx.test` },
    { host: "80-UPPER_case.sbx.test" },
    { ...rig.routing(), "e2b-sandbox-port": "x" },
    { "e2b-sandbox-id": fakeSandboxId },
  ];
  for (const headers of cases) {
    const answer = await rig.fetch("/", { headers });
    assert.deepEqual([answer.status, JSON.parse(answer.body).code], [400, 400], JSON.stringify(headers));
  }
  assert.equal((await rig.fetch("http://evil.example/files?path=a")).status, 400);
});

test("a browser's preflight for the agent is answered at the door, for a user's port it passes", async () => {
  await using rig = await GatewayRig.start();
  const asking = {
    "access-control-request-headers": "authorization,x-access-token,connect-protocol-version",
  };
  const agent = await rig.fetch("/files", { method: "OPTIONS", headers: { ...rig.routing(), ...asking } });
  assert.equal(agent.status, 204);
  assert.equal(agent.headers["access-control-allow-origin"], "*");
  assert.equal(agent.headers["access-control-allow-headers"], asking["access-control-request-headers"]);
  assert.equal(rig.worker.operations.length, 0);
  await rig.fetch("/", { method: "OPTIONS", headers: { ...rig.routing(3000), ...asking } });
  assert.equal(rig.worker.operations[0]?.head.method, "OPTIONS");
});

test("one sandbox may not have more requests under way than its limit", async () => {
  await using rig = await GatewayRig.start({ limits: { sandboxRequests: 2 } });
  rig.worker.serve = () => undefined;
  const waiting = [rig.fetch("/files?path=a"), rig.fetch("/files?path=a")];
  const second = await rig.worker.operation(1);
  const third = await rig.fetch("/files?path=a");
  assert.deepEqual([third.status, third.headers["retry-after"]], [429, "1"]);
  rig.worker.operations[0]?.admit(200, [], "a");
  second.admit(200, [], "b");
  await Promise.all(waiting);
  rig.worker.serve = (operation) => operation.admit(200, [], "ok");
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
  assert.equal(rig.gateway.underWay, 0);
});

test("too many or too long headers are 431", async () => {
  await using rig = await GatewayRig.start({ limits: { headerLines: 30, headerBytes: 8192 } });
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`x-${at}`, "1"]));
  assert.equal((await rig.fetch("/files?path=a", { headers: { ...rig.routing(), ...many } })).status, 431);
  const long = await rig.fetch("/files?path=a", { headers: { ...rig.routing(), x: "x".repeat(9000) } });
  assert.equal(long.status, 431);
});
