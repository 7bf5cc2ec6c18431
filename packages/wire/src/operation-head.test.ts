// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAnswerHead, parseOperationHead } from "./operation-head.ts";

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
