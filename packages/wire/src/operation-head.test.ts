// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { parseAnswerHead, parseHostOperationHead, parseOperationHead } from "./operation-head.ts";

const head = {
  admission: "adm_aaaaaaaaaaaaaaaaaaaaaaaaaa",
  sandbox: "iaaaaaaaaaaaaaaaaaaaa",
  capability: "a.b.c",
  target: { purpose: "control" },
  method: "GET",
  path: "/files?path=a",
  headers: ["range", "bytes=0-1"],
};

test("an operation's head may say that its body waits for the admission (R-27), and only so", () => {
  assert.equal(parseOperationHead(head).awaitAdmission, undefined);
  assert.equal(parseOperationHead({ ...head, awaitAdmission: true }).awaitAdmission, true);
  assert.throws(() => parseOperationHead({ ...head, awaitAdmission: false }), { code: "link/protocol" });
  assert.throws(() => parseOperationHead({ ...head, more: 1 }), { code: "input/invalid" });
});

test("an answer's status is 101 or 200 to 599", () => {
  for (const status of [101, 200, 421, 599])
    assert.equal(parseAnswerHead({ status, headers: [] }).status, status);
  for (const status of [100, 102, 103, 199, 600, 200.5, "200"]) {
    assert.throws(() => parseAnswerHead({ status, headers: [] }), { code: "link/protocol" });
  }
});

const { admission: _admission, sandbox: _sandbox, capability: _capability, ...shared } = head;
const hostHead = { ...shared, activation: `act_${"a".repeat(26)}` };
const servicePort = { purpose: "service-port", port: 8080, protocol: "websocket" };

test("an operation's head is read whole", () => {
  assert.deepEqual(parseOperationHead(head), head);
  assert.deepEqual(parseOperationHead({ ...head, target: servicePort }).target, servicePort);
  assert.deepEqual(parseHostOperationHead(hostHead), hostHead);
});

test("R-13: an operation's head names its target apart from the capability, and a bridge's head carries none", () => {
  assert.throws(() => parseOperationHead({ ...head, sandbox: undefined }), { code: "input/invalid" });
  assert.throws(() => parseHostOperationHead({ ...hostHead, capability: "a.b.c" }), {
    code: "input/invalid",
  });
});

test("an answer says that nothing listens on the port, and only so", () => {
  const answer = { status: 502, headers: [] };
  assert.deepEqual(parseAnswerHead({ ...answer, portClosed: true }), { ...answer, portClosed: true });
  assert.throws(() => parseAnswerHead({ ...answer, portClosed: false }), { code: "link/protocol" });
});

test("R-22: an answer says that its stream cannot go on, and only so", () => {
  const answer = { status: 503, headers: [] };
  assert.deepEqual(parseAnswerHead({ ...answer, streamLost: true }), { ...answer, streamLost: true });
  assert.throws(() => parseAnswerHead({ ...answer, streamLost: "yes" }), { code: "link/protocol" });
});

test("a head with a member that is not of its form is refused", () => {
  for (const change of [
    { admission: "adm_x" },
    { sandbox: "x" },
    { capability: 1 },
    { method: "get" },
    { method: "GET / HTTP/1.1" },
    { method: 1 },
    { path: "files" },
    { path: "/a b" },
    { path: "/a\r\nx: y" },
    { path: "/\0" },
    { path: 1 },
    { target: null },
    { target: { purpose: "other" } },
    { target: { purpose: "control", port: 1 } },
    { target: { purpose: "other", port: 1, protocol: "http" } },
    { target: { ...servicePort, port: 0 } },
    { target: { ...servicePort, port: 65_536 } },
    { target: { ...servicePort, port: 1.5 } },
    { target: { ...servicePort, port: "80" } },
    { target: { ...servicePort, protocol: "smtp" } },
    { headers: {} },
    { headers: ["range"] },
    { headers: ["range", 1] },
    { headers: ["Range", "x"] },
    { headers: ["", "x"] },
    { headers: ["a b", "x"] },
    { headers: ["a", "x\r\nspace-admitted: y"] },
    { headers: ["a", "\0"] },
  ]) {
    const refused = (error: unknown): boolean =>
      isSpaceError(error, "link/protocol") || isSpaceError(error, "input/invalid");
    assert.throws(() => parseOperationHead({ ...head, ...change }), refused, JSON.stringify(change));
  }
});
