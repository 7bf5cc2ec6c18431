// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { it } from "node:test";
import {
  type AdoptRequest,
  type BridgeReport,
  type CarriedPiece,
  type Clock,
  type HostControl,
  isSpaceError,
  parseActivationId,
  parseSandboxId,
  Secret,
  SpaceError,
} from "@space/model";
import { hostControlHandlers, hostControlOver } from "./host-control-rpc.ts";
import { decodeJson } from "./json.ts";
import { FrameLink } from "./link.ts";
import { callRpc, rpcMethod, serveRpc } from "./rpc.ts";

const activationId = parseActivationId(`act_${"a".repeat(26)}`);
const next = parseActivationId(`act_${"b".repeat(26)}`);
const secret = new Uint8Array(32).fill(7);
const request: AdoptRequest = {
  activationId,
  sandboxId: parseSandboxId(`i${"0".repeat(20)}`),
  template: "base",
  socketPath: "/run/guest.sock",
  activationSecret: new Secret(secret),
  guest: { pid: 12, startTime: "345" },
  isFirst: true,
  variables: { A: "1", __proto__x: "2" },
};

const report: BridgeReport = {
  source: "0123456789abcdef",
  number: 7,
  events: [
    { name: "bridge/endpoint-refused", fields: { activationId, problem: "pid", times: 3 } },
    { name: "bridge/suppressed", fields: { times: 9 } },
  ],
};

const piece: CarriedPiece = { offset: 3, totalBytes: 6, bytes: Buffer.from("ghi") };

const stoppedClock: Clock = { wallMs: () => 0, monotonicMs: () => 0, after: () => () => undefined };

function connected(control: HostControl): { link: FrameLink; remote: HostControl } {
  const [near, far] = duplexPair();
  const handlers = hostControlHandlers(control);
  new FrameLink(far, {
    dialled: false,
    onOpen: (stream, head) => {
      const rpc = rpcMethod(decodeJson(head.toString()));
      return serveRpc(
        stream,
        decodeJson(head.toString()) as { rpc: string },
        rpc === undefined ? new Map() : handlers,
      );
    },
  });
  const link = new FrameLink(near, { dialled: true });
  return { link, remote: hostControlOver(link, stoppedClock) };
}

function recording(calls: unknown[][]): HostControl {
  return {
    adopt: async (...args) => void calls.push(["adopt", ...args]),
    rekey: async (...args) => void calls.push(["rekey", ...args]),
    quiesce: async (...args) => calls.push(["quiesce", ...args]) > 0,
    carried: async (...args) => {
      calls.push(["carried", ...args]);
      return piece;
    },
    carry: async (...args) => void calls.push(["carry", ...args]),
    release: async (...args) => void calls.push(["release", ...args]),
    holdUntil: async (...args) => void calls.push(["holdUntil", ...args]),
    list: async () => [activationId, next],
    takeReport: async (seen) => {
      calls.push(["takeReport", seen]);
      return report;
    },
  };
}

it("carries each command with its parameters, the secret included", async () => {
  const calls: unknown[][] = [];
  const { link, remote } = connected(recording(calls));
  await remote.adopt(request);
  await remote.rekey({ from: activationId, to: next, activationSecret: new Secret(secret) });
  assert.equal(await remote.quiesce(next, 250, true), true);
  assert.deepEqual(await remote.carried(next, 3), piece);
  await remote.carry(next, piece);
  await remote.release(next);
  await remote.holdUntil(1234.5);
  assert.deepEqual(await remote.list(), [activationId, next]);
  const { source, number } = report;
  assert.deepEqual(await remote.takeReport(null), report);
  assert.deepEqual(await remote.takeReport({ source, number }), report);
  link.destroy(undefined);

  const [adopted, rekeyed] = calls as [
    [string, AdoptRequest],
    [string, { activationSecret: Secret<Uint8Array> }],
  ];
  const { activationSecret, ...rest } = adopted[1];
  const { activationSecret: _sent, ...sent } = request;
  assert.deepEqual(rest, sent);
  assert.deepEqual([...activationSecret.reveal()], [...secret]);
  assert.deepEqual([...rekeyed[1].activationSecret.reveal()], [...secret]);
  assert.deepEqual(calls.slice(2), [
    ["quiesce", next, 250, true],
    ["carried", next, 3],
    ["carry", next, piece],
    ["release", next],
    ["holdUntil", 1234.5],
    ["takeReport", null],
    ["takeReport", { source, number }],
  ]);
});

it("carries the bridge's own error back", async () => {
  const failing = {
    ...recording([]),
    adopt: async () => Promise.reject(new SpaceError("endpoint/mismatch", { problem: "pid" })),
  };
  const { link, remote } = connected(failing);
  await assert.rejects(
    remote.adopt(request),
    (error) => isSpaceError(error, "endpoint/mismatch") && error.details.problem === "pid",
  );
  link.destroy(undefined);
});

it("refuses parameters that are not of their form", async () => {
  const { link } = connected(recording([]));
  const bad: [string, unknown][] = [
    ["host.adopt", { ...request, activationSecret: "short" }],
    ["host.adopt", { ...request, activationSecret: Buffer.from(secret).toString("base64url"), more: 1 }],
    [
      "host.rekey",
      { from: activationId, to: "act_x", activationSecret: Buffer.from(secret).toString("base64url") },
    ],
    ["host.quiesce", { activationId, limitMs: -1, letGo: false }],
    ["host.quiesce", { activationId, limitMs: 250, letGo: "yes" }],
    ["host.quiesce", { activationId, limitMs: 250 }],
    ["host.release", {}],
    ["host.hold-until", { deadlineBootMs: -1 }],
    ["host.hold-until", { deadlineBootMs: "5" }],
  ];
  for (const [method, params] of bad) {
    await assert.rejects(
      callRpc(link, stoppedClock, { method, params }),
      (error) => isSpaceError(error, "input/invalid"),
      method,
    );
  }
  link.destroy(undefined);
});
