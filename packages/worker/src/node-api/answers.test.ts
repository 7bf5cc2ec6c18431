// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { routeDigest } from "@space/capability";
import { parseAdmissionId, parseIdentity } from "@space/model";
import { admittedHead, admittedText, denyHead, failureHead, refreshHead } from "./answers.ts";

const admission = parseAdmissionId(`adm_${"a".repeat(26)}`);
const identity = parseIdentity({
  sandboxId: `i${"a".repeat(20)}`,
  generation: "4",
  placement: { workerId: `wrk_${"w".repeat(16)}`, substrate: "namespace" },
  activation: { id: `act_${"b".repeat(26)}`, attempt: 1 },
});

test("R-14: an admitted answer has exactly our one header, whatever the guest sent, in whatever case", () => {
  const headers = ["content-type", "a", "space-admitted", "forged", "SPACE-Verdict", "deny", "spaced", "own"];
  assert.deepEqual(JSON.parse(admittedHead({ status: 421, headers }, admission)), {
    status: 421,
    headers: ["content-type", "a", "spaced", "own", "space-admitted", admission],
  });
});

test("R-14: a head in which nothing can be ours is passed on as it is, with our one header", () => {
  const plain = { status: 421, headers: ["content-type", "a", "spaced", "own é"] };
  assert.equal(admittedText(JSON.stringify(plain), admission), admittedHead(plain, admission));
});

test("R-14: a head that may hold a header of ours, however it is written, is read before it is passed on", () => {
  const mayBeOurs = [
    { status: 200, headers: ["space-admitted", "forged"] },
    { status: 200, headers: ["SPACE-Verdict", "deny"] },
    { status: 200, headers: ["a", "space-"] },
    { status: 200, headers: ["a", 'b","space-verdict","deny'] },
    { status: 200, headers: ["a", "b"], portClosed: true },
    { status: 503, headers: [], streamLost: true },
    { status: 204, headers: [] },
  ];
  for (const head of mayBeOurs) assert.equal(admittedText(JSON.stringify(head), admission), undefined);
  const escaped = '{"status":200,"headers":["\\u0073pace-admitted","forged"]}';
  assert.deepEqual(JSON.parse(escaped).headers, ["space-admitted", "forged"]);
  assert.equal(admittedText(escaped, admission), undefined);
});

test("R-14: a refusal says its verdict, its admission, and of a stale route only its digest", () => {
  assert.deepEqual(JSON.parse(denyHead(admission)), {
    status: 403,
    headers: ["space-verdict", "deny", "space-admission", admission],
  });
  assert.deepEqual(JSON.parse(refreshHead(identity, admission)), {
    status: 421,
    headers: [
      "space-verdict",
      "refresh-route",
      "space-admission",
      admission,
      "space-rejected-route",
      routeDigest(identity),
    ],
  });
});

test("an answer of the worker's own is admitted and names its failure", () => {
  assert.deepEqual(JSON.parse(failureHead(503, "endpoint/unverifiable", admission)), {
    status: 503,
    headers: ["space-admitted", admission, "space-failure", "endpoint/unverifiable"],
  });
});
