// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { headerValue } from "@space/wire";
import { type Refusal, refusalAnswer } from "./refusal.ts";

const agent = { sandbox: "iabc", port: 49_983, headers: [] };
const port = { ...agent, port: 3000 };
const told = (refusal: Refusal, about = agent): unknown =>
  JSON.parse(refusalAnswer(refusal, about).body.toString());

test("refusals are the JSON that E2B's clients know", () => {
  assert.deepEqual(told({ kind: "not-running" }), {
    sandboxId: "iabc",
    message: "The sandbox was not found",
    code: 502,
  });
  assert.deepEqual(told({ kind: "unauthenticated", problem: "signature-expired" }), {
    code: 401,
    message: "signature is already expired",
  });
  assert.equal(refusalAnswer({ kind: "unauthenticated", problem: "missing" }, port).status, 403);
});

test("a wait is told in whole seconds, at least one", () => {
  for (const [afterMs, seconds] of [
    [1, "1"],
    [1000, "1"],
    [1001, "2"],
  ] as const)
    assert.equal(
      headerValue(refusalAnswer({ kind: "try-again", afterMs }, agent).headers, "retry-after"),
      seconds,
    );
});

test("a browser that navigates gets a page, a script in a browser does not", () => {
  const typeFor = (...headers: string[]): string | undefined =>
    headerValue(refusalAnswer({ kind: "port-closed" }, { ...port, headers }).headers, "content-type");
  const browser = ["user-agent", "Mozilla/5.0 (X11)"];
  assert.equal(typeFor(...browser, "accept", "text/html,*/*"), "text/html; charset=utf-8");
  assert.equal(typeFor(...browser, "sec-fetch-mode", "navigate"), "text/html; charset=utf-8");
  assert.equal(typeFor(...browser, "sec-fetch-mode", "cors", "accept", "text/html"), "application/json");
  assert.equal(typeFor("user-agent", "curl/8", "accept", "text/html"), "application/json");
});
