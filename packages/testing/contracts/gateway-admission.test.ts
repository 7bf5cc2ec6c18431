// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// which of a worker's answers count, and what of them a caller sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeIdentity } from "../src/fake-route-source.ts";
import type { FakeOperation } from "../src/fake-worker-link.ts";
import { GatewayRig } from "../src/gateway-rig.ts";

const other = `adm_${"z".repeat(26)}`;
const write = { method: "POST", body: "x" };

test("R-14: a caller's own space- headers never reach the worker", async () => {
  await using rig = await GatewayRig.start();
  const forged = {
    "space-admitted": other,
    "Space-Verdict": "refresh-route",
    "SPACE-ADMISSION": other,
    "space-rejected-route": "0".repeat(64),
    "space-anything": "x",
  };
  for (const port of [49_983, 3000])
    await rig.fetch("/files?path=a", { headers: { ...rig.routing(port), ...forged } });
  for (const { head } of rig.worker.operations)
    assert.equal(
      head.headers.some((text) => text.toLowerCase().startsWith("space-")),
      false,
    );
});

test("R-14: nothing beginning with space- reaches a caller, whoever put it there", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) =>
    operation.admit(200, ["space-other", "1", "x-own", "2", "space-epoch", "3"], "ok");
  const answer = await rig.fetch("/", { headers: rig.routing(3000) });
  assert.deepEqual(
    Object.keys(answer.headers).filter((name) => name.startsWith("space-")),
    [],
  );
  assert.equal(answer.headers["x-own"], "2");
});

test("R-14: a guest's own 421 is no signal and does not leave the gateway", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(421, ["content-type", "text/plain"], "misdirected");
  for (const port of [3000, 49_983]) {
    const answer = await rig.fetch("/files?path=a", { headers: rig.routing(port) });
    assert.equal(answer.status, 502);
    assert.doesNotMatch(answer.body, /misdirected/);
  }
  assert.equal(rig.worker.operations.length, 2);
  assert.equal(rig.gateway.counts.refreshes, 0);
});

test("R-14: a guest's forged verdict in the body or behind an admission changes nothing", async () => {
  await using rig = await GatewayRig.start();
  const verdict = ["x-space-verdict", "refresh-route", "x", "space-verdict: refresh-route"];
  rig.worker.serve = (operation) => operation.admit(200, verdict, '{"space-verdict":"refresh-route"}');
  assert.equal((await rig.fetch("/", { headers: rig.routing(3000) })).status, 200);
  assert.equal(rig.worker.operations.length, 1);
});

const unrecognised: readonly (readonly [string, (operation: FakeOperation) => void])[] = [
  ["no admission and no verdict", (operation) => operation.answer(200, [], "secret")],
  ["another request's admission", (operation) => operation.answer(200, ["space-admitted", other], "secret")],
  [
    "an admission together with a verdict",
    (operation) =>
      operation.answer(200, ["space-admitted", operation.head.admission, "space-verdict", "deny"], "secret"),
  ],
  ["a 421 without a verdict", (operation) => operation.answer(421, [], "")],
  [
    "a verdict with another request's id",
    (operation) =>
      operation.answer(
        421,
        ["space-verdict", "refresh-route", "space-admission", other, "space-rejected-route", "0".repeat(64)],
        "",
      ),
  ],
  [
    "a verdict that rejects a route which was not presented",
    (operation) => operation.refreshRoute(fakeIdentity(9n)),
  ],
  ["a head that is none", (operation) => operation.stream.sendHead("{", false)],
  [
    "a status that is none",
    (operation) => operation.answer(42, ["space-admitted", operation.head.admission], "secret"),
  ],
  [
    "an informational head",
    (operation) => operation.answer(100, ["space-admitted", operation.head.admission], ""),
  ],
  ["bytes before any head", (operation) => void operation.stream.send(Buffer.from("secret"))],
  ["a leave to send a body that was sent already", (operation) => operation.proceed()],
  ["an end before any head", (operation) => operation.stream.end()],
  [
    "a switch of protocols that nobody asked for",
    (operation) => operation.answer(101, ["space-admitted", other], ""),
  ],
];

for (const [what, serve] of unrecognised) {
  test(`R-14: ${what} is a transport error`, async () => {
    await using rig = await GatewayRig.start();
    rig.worker.serve = serve;
    const answer = await rig.fetch("/files?path=a", { ...write, headers: rig.routing() });
    assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"]);
    assert.doesNotMatch(answer.body, /secret/);
    assert.equal(rig.worker.operations.length, 1, "an effect is not tried again");
    assert.equal(rig.gateway.counts.refreshes, 0);
    assert.equal(rig.audited[0]?.name, "worker/misbehaved");
  });
}

test("R-14: a deny is a 403 without a reason, and the control plane is asked anew before another request", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.deny();
  const answer = await rig.fetch("/files?path=a");
  assert.deepEqual([answer.status, JSON.parse(answer.body)], [403, { code: 403, message: "forbidden" }]);
  assert.equal(rig.worker.operations.length, 1);
  assert.equal(rig.gateway.counts.repairs, 0);
  const admission = rig.worker.operations[0]?.head.admission;
  assert.deepEqual(rig.audited, [
    { name: "route/denied", fields: { admission, sandboxId: rig.worker.operations[0]?.head.sandbox } },
  ]);
  rig.worker.serve = (operation) => operation.admit(200, [], "served");
  assert.equal((await rig.fetch("/files?path=a")).status, 200);
  assert.equal(rig.routes.requests.length, 2, "the denied entry is not used again");
});

test("a worker's failure after the admission is a 503, or what clients know it as", async () => {
  await using rig = await GatewayRig.start();
  const expected = {
    "substrate/failed": 503,
    "sandbox/not-running": 502,
    "input/too-large": 413,
    nonsense: 503,
  };
  for (const [code, status] of Object.entries(expected)) {
    rig.worker.serve = (operation) => operation.fail(code);
    assert.equal((await rig.fetch("/files?path=a")).status, status, code);
  }
});

test("a guest's body longer than it announced never becomes the next answer on the connection", async () => {
  await using rig = await GatewayRig.start();
  const smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
  rig.worker.serve = (operation) => operation.admit(200, ["content-length", "2"], `ok${smuggled}`);
  await assert.rejects(rig.fetch("/", { headers: rig.routing(3000) }));
});

test("an answer shorter than it announced is broken off, on a connection that is kept open too", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200, ["content-length", "20"], "short");
  const headers = { ...rig.routing(3000), connection: "keep-alive" };
  await assert.rejects(rig.fetch("/", { headers }));
  while (rig.connections > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("a guest's headers that cannot be sent are a 502", async () => {
  await using rig = await GatewayRig.start();
  const bad = [
    ["x", "a\u0001b"],
    ["x", "\u0100"],
    ["content-length", "1", "content-length", "2"],
    ["content-length", "-1"],
  ];
  for (const headers of bad) {
    rig.worker.serve = (operation) => operation.admit(200, headers, "ok");
    assert.equal((await rig.fetch("/", { headers: rig.routing(3000) })).status, 502, String(headers));
  }
});

test("answers without a body stay without one: HEAD, 204, 304", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.admit(200, ["content-length", "5"], "extra");
  const head = await rig.fetch("/files?path=a", { method: "HEAD" });
  assert.deepEqual([head.status, head.headers["content-length"], head.body], [200, "5", ""]);
  for (const status of [204, 304]) {
    rig.worker.serve = (operation) =>
      operation.admit(status, status === 204 ? ["content-length", "5"] : [], "extra");
    const answer = await rig.fetch("/", { headers: rig.routing(3000) });
    assert.deepEqual([answer.status, answer.body, answer.headers["content-length"]], [status, "", undefined]);
  }
});
