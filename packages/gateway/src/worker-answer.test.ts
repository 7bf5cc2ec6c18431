// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAdmissionId, parseDigest } from "@space/model";
import { readWorkerAnswer, type WorkerAnswer } from "./worker-answer.ts";

const admission = parseAdmissionId(`adm_${"a".repeat(26)}`);
const other = parseAdmissionId(`adm_${"b".repeat(26)}`);
const route = parseDigest("1".repeat(64));

function read(status: unknown, ...headers: string[]): WorkerAnswer {
  return readWorkerAnswer(Buffer.from(JSON.stringify({ status, headers })), admission, route);
}
const refresh = [
  "space-verdict",
  "refresh-route",
  "space-admission",
  admission,
  "space-rejected-route",
  route,
];

test("R-14: an answer with this request's admission is the guest's, without a reserved header", () => {
  assert.deepEqual(
    read(200, "space-admitted", admission, "a", "b", "space-x", "y", "connection", "c", "c", "d"),
    {
      kind: "admitted",
      head: { status: 200, headers: ["a", "b"] },
    },
  );
});

test("R-14: both verdicts are recognised only whole", () => {
  assert.equal(read(421, ...refresh).kind, "refresh-route");
  assert.equal(read(403, "space-verdict", "deny", "space-admission", admission).kind, "deny");
});

test("R-14: anything else is unrecognised", () => {
  const cases: [unknown, ...string[]][] = [
    [200],
    [421],
    [403],
    [200, "space-admitted", other],
    [200, "space-admitted", ""],
    [200, "space-admitted", admission, "space-admitted", admission],
    [200, "Space-Admitted", admission],
    [421, ...refresh, "space-admitted", admission],
    [421, "space-verdict", "refresh-route", "space-rejected-route", route],
    [421, "space-verdict", "refresh-route", "space-admission", other, "space-rejected-route", route],
    [421, "space-verdict", "refresh-route", "space-admission", admission],
    [
      421,
      "space-verdict",
      "refresh-route",
      "space-admission",
      admission,
      "space-rejected-route",
      "2".repeat(64),
    ],
    [200, ...refresh],
    [421, "space-verdict", "deny", "space-admission", admission],
    [403, "space-verdict", "deny"],
    [403, "space-verdict", "match", "space-admission", admission],
    [100, "space-admitted", admission],
    [99, "space-admitted", admission],
    ["200", "space-admitted", admission],
  ];
  for (const [status, ...headers] of cases)
    assert.equal(read(status, ...headers).kind, "unrecognised", JSON.stringify([status, headers]));
  for (const text of ["", "{", "null", "[]", '{"status":200}', '{"status":200,"headers":["a"],"x":1}'])
    assert.equal(readWorkerAnswer(Buffer.from(text), admission, route).kind, "unrecognised", text);
});

test("a worker's own failure is not the guest's answer", () => {
  assert.deepEqual(read(502, "space-admitted", admission, "space-failure", "sandbox/port-closed"), {
    kind: "failed",
    code: "sandbox/port-closed",
  });
  assert.equal(read(502, "space-failure", "sandbox/port-closed").kind, "unrecognised");
});
