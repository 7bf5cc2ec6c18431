// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newSigningKey, routeDigest } from "@space/capability";
import { type Access, type ExecutionIdentity, freezeIdentity, parseWorkerId } from "@space/model";
import { headerValue, type OperationHead } from "@space/wire";
import { createUncheckedBenchWorker } from "@space/worker/bench";
import { settle } from "../src/virtual-clock.ts";
import { type GatewayAnswer, openOperation, verdictOf, WorkerRig } from "../src/worker-rig.ts";

async function running(): Promise<{ rig: WorkerRig; identity: ExecutionIdentity }> {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  return { rig, identity };
}

/** The operation is refused with this verdict, and nothing of it, nor any reason, went anywhere. */
function assertRefused(
  rig: WorkerRig,
  answer: GatewayAnswer,
  head: OperationHead,
  kind: "deny" | "refresh-route",
): void {
  assert.equal(answer.status, kind === "deny" ? 403 : 421);
  assert.equal(headerValue(answer.headers, "space-verdict"), kind);
  assert.equal(headerValue(answer.headers, "space-admission"), head.admission);
  assert.equal(headerValue(answer.headers, "space-admitted"), undefined);
  assert.equal(answer.headers.length, kind === "deny" ? 4 : 6, "no further detail");
  assert.equal(answer.body, "");
  assert.equal(answer.proceed, undefined);
  assert.deepEqual(rig.bridge.operations, [], "nothing was forwarded");
}

const service = (port: number, protocol: "http" | "websocket" | "h2c" | "tcp" = "http"): Access => ({
  purpose: "service-port",
  port,
  protocol,
});

describe("R-13: the verdict of each row", () => {
  test("match: the identical identity is forwarded, with the activation and without the capability", async () => {
    const { rig, identity } = await running();
    const head = rig.head(identity);
    const answer = await rig.send(rig.gateway(), head);
    assert.equal(answer.status, 200);
    assert.equal(headerValue(answer.headers, "space-admitted"), head.admission);
    assert.equal(headerValue(answer.headers, "space-verdict"), undefined);
    const [forwarded] = rig.bridge.operations;
    assert.equal(forwarded?.head.activation, identity.activation.id);
    assert.equal(forwarded?.head.path, head.path);
    assert.deepEqual(forwarded?.head.headers, head.headers);
    assert.ok(!forwarded?.rawHead.includes(head.capability));
    assert.ok(!forwarded?.rawHead.includes(head.admission));
  });

  const others: readonly [string, (identity: ExecutionIdentity) => ExecutionIdentity, string][] = [
    [
      "an older generation",
      (held) => ({ ...held, generation: 1n as typeof held.generation }),
      "older-generation",
    ],
    [
      "a newer generation",
      (held) => ({ ...held, generation: 3n as typeof held.generation }),
      "newer-generation",
    ],
    [
      "another placement",
      (held) => ({
        ...held,
        placement: { ...held.placement, workerId: parseWorkerId(`wrk_${"z".repeat(16)}`) },
      }),
      "other-placement",
    ],
    [
      "another attempt",
      (held) => ({ ...held, activation: { ...held.activation, attempt: 2 } }),
      "other-activation",
    ],
  ];
  for (const [what, change, reason] of others) {
    test(`refresh-route: ${what}, whether older or newer, and never an install (R-3, R-14)`, async () => {
      const rig = new WorkerRig();
      await rig.boot();
      const identity = rig.identity({ generation: 2 });
      await rig.run(identity);
      const claimed = freezeIdentity(change(identity));
      const head = rig.head(identity, {
        capability: rig.authority.capability({ identity: claimed, presenter: rig.presenter }),
      });
      const answer = await rig.send(rig.gateway(), head);
      assertRefused(rig, answer, head, "refresh-route");
      assert.equal(headerValue(answer.headers, "space-rejected-route"), routeDigest(claimed));
      assert.equal(rig.audit.of("admission/refreshed")[0]?.reason, reason);
      assert.deepEqual(rig.daemon.store.read(identity.sandboxId)?.identity, identity);
    });
  }

  test("refresh-route: not installed here", async () => {
    const { rig } = await running();
    const absent = rig.identity();
    const head = rig.head(absent);
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "refresh-route");
    assert.equal(rig.audit.of("admission/refreshed")[0]?.reason, "not-installed");
  });

  test("refresh-route: activated, but not installed", async () => {
    const { rig } = await running();
    const early = rig.identity();
    await rig.worker.control.activate(rig.request(early));
    const head = rig.head(early);
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "refresh-route");
  });

  test("refresh-route: retired here, within the capability's life", async () => {
    const { rig, identity } = await running();
    const head = rig.head(identity);
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "refresh-route");
    assert.equal(rig.audit.of("admission/refreshed")[0]?.reason, "retired");
  });

  test("deny: a capability for another sandbox than the target, also one that runs here", async () => {
    const { rig, identity } = await running();
    const other = rig.identity();
    await rig.run(other);
    const head = rig.head(identity, { sandbox: other.sandboxId });
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "deny");
    assert.equal(rig.audit.of("admission/denied")[0]?.reason, "other-sandbox");
  });

  const control: Access = { purpose: "control", scopes: ["files:read"] };
  const denied: readonly [
    string,
    (rig: WorkerRig, identity: ExecutionIdentity) => Partial<OperationHead>,
    string,
  ][] = [
    ["R-6: bytes that are no capability", () => ({ capability: "no.cap.ability" }), "form"],
    ["R-6: no capability at all", () => ({ capability: "" }), "form"],
    ["R-6: a capability of unlimited size", () => ({ capability: "a".repeat(100_000) }), "form"],
    [
      "R-10: a key that is in no bundle",
      (rig, identity) => ({
        capability: rig.authority.capability({ identity, presenter: rig.presenter, key: newSigningKey() }),
      }),
      "key",
    ],
    [
      "R-6: one altered byte in the signed part",
      (rig, identity) => {
        const [head, payload, signature] = rig.authority
          .capability({ identity, presenter: rig.presenter })
          .split(".");
        const forged = Buffer.from(payload ?? "", "base64url")
          .toString()
          .replace('"generation":"1"', '"generation":"2"');
        return { capability: `${head}.${Buffer.from(forged).toString("base64url")}.${signature}` };
      },
      "signature",
    ],
    [
      "R-7: presented by another component than it was issued to",
      (rig, identity) => ({ capability: rig.authority.capability({ identity, presenter: "A".repeat(43) }) }),
      "presenter",
    ],
    [
      "R-8: a scope that it does not hold",
      (rig, identity) => ({
        capability: rig.authority.capability({ identity, presenter: rig.presenter, access: control }),
        method: "POST",
        path: "/files",
      }),
      "scope",
    ],
    ["R-8: an operation that is in no table", () => ({ method: "GET", path: "/secret" }), "scope"],
    ["R-8: an operation by another spelling of its path", () => ({ path: "//files" }), "scope"],
    [
      "R-17: a service port with a control capability",
      () => ({ target: { purpose: "service-port", port: 8080, protocol: "http" } }),
      "purpose",
    ],
    [
      "R-17: a control operation with a service port's capability",
      (rig, identity) => ({
        capability: rig.authority.capability({ identity, presenter: rig.presenter, access: service(8080) }),
      }),
      "purpose",
    ],
    [
      "R-17: another port",
      (rig, identity) => ({
        capability: rig.authority.capability({ identity, presenter: rig.presenter, access: service(8080) }),
        target: { purpose: "service-port", port: 8081, protocol: "http" },
      }),
      "port",
    ],
    [
      "R-17: another protocol",
      (rig, identity) => ({
        capability: rig.authority.capability({ identity, presenter: rig.presenter, access: service(8080) }),
        target: { purpose: "service-port", port: 8080, protocol: "websocket" },
      }),
      "protocol",
    ],
  ];
  for (const [what, change, reason] of denied) {
    test(`deny: ${what}`, async () => {
      const { rig, identity } = await running();
      const head = rig.head(identity, change(rig, identity));
      assertRefused(rig, await rig.send(rig.gateway(), head), head, "deny");
      assert.deepEqual(
        rig.audit.of("admission/denied").map((event) => [event.reason, event.admission]),
        [[reason, head.admission]],
      );
    });
  }

  test("the order decides: a forged capability for another sandbox is a bad signature, not another sandbox", async () => {
    const { rig, identity } = await running();
    const token = rig.authority.capability({ identity, presenter: rig.presenter });
    const head = rig.head(rig.identity(), { capability: `${token.slice(0, -8)}AAAAAAAA` });
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "deny");
    assert.equal(rig.audit.of("admission/denied")[0]?.reason, "signature");
  });
});

describe("time and keys", () => {
  test("R-9, R-11: a remembered capability is valid at 134.9 s and refused at 135 s", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    const { capability } = rig.head(identity);
    for (const [afterMs, status] of [
      [0, 200],
      [119_900, 200],
      [15_000, 200],
      [100, 403],
    ] as const) {
      await rig.clock.advance(afterMs);
      assert.equal((await rig.send(link, rig.head(identity, { capability }))).status, status);
    }
    assert.equal(rig.audit.of("admission/denied")[0]?.reason, "expired");
  });

  test("R-10: without a bundle every capability is refused, and a certificate too", async () => {
    const { rig, identity } = await running();
    rig.disk.bundle = undefined;
    rig.kill();
    await rig.boot({
      prepare: ({ store }) => store.writeBundle(1, rig.authority.bundle(1, [newSigningKey()])),
    });
    const head = rig.head(identity);
    assertRefused(rig, await rig.send(rig.gateway(), head), head, "deny");
    assert.equal(rig.audit.of("admission/denied")[0]?.reason, "key");
  });

  test("R-10, R-11: replacing the bundle refuses the removed key's capabilities, remembered ones too", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    const head = rig.head(identity);
    assert.equal((await rig.send(link, head)).status, 200);
    await rig.worker.control.replaceKeys(rig.authority.bundle(2, [newSigningKey()]));
    assert.equal((await rig.send(link, head)).status, 403);
    assert.equal(rig.worker.stats().bundleVersion, 2);
  });

  test("R-10: an older bundle, or one of another root, is refused and changes nothing", async () => {
    const { rig, identity } = await running();
    const { control } = rig.worker;
    await control.replaceKeys(rig.authority.bundle(5));
    await control.replaceKeys(rig.authority.bundle(5));
    await assert.rejects(control.replaceKeys(rig.authority.bundle(4)), { code: "bundle/rollback" });
    const forged = rig.authority.bundle(6, [rig.authority.key], newSigningKey());
    await assert.rejects(control.replaceKeys(forged), { code: "bundle/refused" });
    assert.equal(rig.worker.stats().bundleVersion, 5);
    assert.equal(rig.disk.bundle?.version, 5);
    assert.equal((await rig.ask(identity)).status, 200);
  });
});

describe("what passes through", () => {
  test("R-14: a guest's own 421 and its space- headers are plain data and stripped", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = (operation) =>
      rig.bridge.answer(operation, 421, [
        "space-verdict",
        "refresh-route",
        "space-admission",
        "adm_forged",
        "space-admitted",
        "adm_forged",
        "space-failure",
        "sandbox/port-closed",
        "x-own",
        "kept",
      ]);
    const head = rig.head(identity);
    const answer = await rig.send(rig.gateway(), head);
    assert.equal(answer.status, 421);
    assert.equal(verdictOf(answer), "match");
    assert.deepEqual(
      answer.headers.filter((_text, at) => at % 2 === 0),
      ["served-by", "x-own", "space-admitted"],
    );
    assert.equal(headerValue(answer.headers, "space-admitted"), head.admission);
  });

  test("a head that the bridge may not send ends the operation with a typed reset", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = ({ stream }) => stream.sendHead('{"status":99,"headers":[]}', true);
    const answer = await rig.ask(identity);
    assert.equal(answer.reset, "protocol");
    assert.equal(answer.status, undefined);
  });

  test("R-22: that a stream cannot go on is the bridge's word, told apart from the guest's answers", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = ({ stream }) =>
      stream.sendHead(JSON.stringify({ status: 503, headers: [], streamLost: true }), true);
    const answer = await rig.ask(identity);
    assert.equal(answer.status, 503);
    assert.equal(headerValue(answer.headers, "space-failure"), "stream/lost");
  });

  test("R-17: a service port's own capability passes, and a closed port is told apart from the guest's answers", async () => {
    const { rig, identity } = await running();
    rig.bridge.onRequestEnd = ({ stream }) =>
      stream.sendHead(JSON.stringify({ status: 502, headers: [], portClosed: true }), true);
    const head = rig.head(identity, {
      capability: rig.authority.capability({ identity, presenter: rig.presenter, access: service(3000) }),
      target: { purpose: "service-port", port: 3000, protocol: "http" },
      path: "/any//path",
    });
    const answer = await rig.send(rig.gateway(), head);
    assert.equal(answer.status, 502);
    assert.equal(headerValue(answer.headers, "space-failure"), "sandbox/port-closed");
    assert.equal(headerValue(answer.headers, "space-admitted"), head.admission);
    assert.deepEqual(rig.bridge.operations[0]?.head.target, head.target);
  });

  test("R-27: no byte of a refused body is forwarded, and more than may be sent along is reset", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    const refused = rig.head(identity, { method: "POST", path: "/files", capability: "a.b.c" });
    const answer = await rig.send(link, refused, "x".repeat(64 * 1024));
    assertRefused(rig, answer, refused, "deny");
    const flood = openOperation(link, rig.head(identity, { capability: "a.b.c" }), false);
    await flood.answer;
    flood.stream.send(Buffer.alloc(65 * 1024));
    await settle();
    assert.equal(flood.reset(), "protocol");
    assert.deepEqual(rig.bridge.operations, []);
    assert.equal((await rig.send(link, rig.head(identity))).status, 200, "the link goes on");
  });

  test("R-27: a long body is asked for only after the verdict", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    const waiting = { awaitAdmission: true, method: "POST", path: "/files" } as const;
    const admitted = openOperation(link, rig.head(identity, waiting), false);
    await settle();
    admitted.stream.send(Buffer.from("body"));
    admitted.stream.end();
    const answer = await admitted.answer;
    assert.equal(answer.proceed, headerValue(answer.headers, "space-admitted"));
    assert.equal(rig.bridge.operations[0]?.body, "body");
    const refused = openOperation(link, rig.head(identity, { ...waiting, capability: "a.b.c" }), true);
    assert.equal((await refused.answer).proceed, undefined);
  });

  test("a head that cannot be read ends its own stream only", async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    for (const head of [
      {},
      { ...rig.head(identity), more: 1 },
      { ...rig.head(identity), sandbox: "../x" },
      "text",
    ]) {
      assert.equal((await openOperation(link, head, true).answer).reset, "protocol");
    }
    assert.equal(rig.audit.of("gateway/misbehaved").length, 4);
    assert.equal((await rig.send(link, rig.head(identity))).status, 200);
  });
});

test("only the bench's own worker is without verification, and it says so", async () => {
  const { rig, identity } = await running();
  assert.equal(rig.worker.stats().admission, "verified");
  await rig.reboot({ create: createUncheckedBenchWorker });
  assert.equal(rig.worker.stats().admission, "unchecked");
  assert.equal((await rig.ask(identity, { capability: "none" })).status, 200);
});
