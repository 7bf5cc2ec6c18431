// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type RequestHead, readRequestHead } from "./request-head.ts";

function read(...raw: string[]): RequestHead {
  const outcome = readRequestHead(raw, 100);
  assert.equal(outcome.kind, "read");
  return outcome.kind === "read" ? outcome.head : assert.fail();
}

test("reads what the gateway needs, whatever the spelling", () => {
  const head = read(
    "HOST",
    "a.test",
    "E2b-Sandbox-Id",
    "i1",
    "e2b-sandbox-port",
    "80",
    "X-Access-Token",
    "t",
    "Content-Length",
    "12",
  );
  assert.equal(head.host, "a.test");
  assert.equal(head.sandboxId, "i1");
  assert.equal(head.sandboxPort, "80");
  assert.equal(head.accessToken, "t");
  assert.equal(head.contentLength, 12);
  assert.equal(head.chunked, false);
  assert.deepEqual(head.headers, ["host", "a.test", "content-length", "12"]);
});

test("R-14: a caller's space- headers are stripped", () => {
  const head = read(
    "Space-Admitted",
    "adm_x",
    "SPACE-verdict",
    "refresh-route",
    "space-",
    "x",
    "spacer",
    "stays",
  );
  assert.deepEqual(head.headers, ["spacer", "stays", "host", ""]);
});

test("the platform's credentials never pass on", () => {
  const head = read(
    "X-API-KEY",
    "k",
    "E2B-Traffic-Access-Token",
    "t",
    "X-Access-Token",
    "a",
    "Authorization",
    "Basic dTo=",
  );
  assert.deepEqual(head.headers, ["authorization", "Basic dTo=", "host", ""]);
});

test("headers of one hop never pass on, nor those that connection names", () => {
  const head = read(
    "Connection",
    "close, X-Mine",
    "X-Mine",
    "1",
    "Keep-Alive",
    "5",
    "TE",
    "trailers",
    "Upgrade",
    "h2c",
    "A",
    "b",
  );
  assert.deepEqual(head.headers, ["a", "b", "host", ""]);
  assert.deepEqual(read("Connection", "keep-alive", "A", "b").headers, ["a", "b", "host", ""]);
});

test("repeated headers stay repeated and in order, cookies become one line", () => {
  const head = read("A", "1", "Cookie", "x=1", "a", "2", "cookie", "y=2");
  assert.deepEqual(head.headers, ["a", "1", "a", "2", "host", "", "cookie", "x=1; y=2"]);
});

test("a deciding header that comes twice is refused", () => {
  for (const name of ["host", "x-access-token", "e2b-sandbox-id", "e2b-sandbox-port", "content-length"])
    assert.equal(readRequestHead([name, "1", name, "1"], 100).kind, "bad", name);
  assert.equal(readRequestHead([":authority", "a", "host", "b"], 100).kind, "bad");
  assert.equal(read(":authority", "a", "host", "a", ":method", "GET").host, "a");
});

test("lengths are plain decimals, and chunked wins over none", () => {
  for (const value of ["-1", "1e3", "0x10", "1.0", "", "9".repeat(16)])
    assert.equal(readRequestHead(["content-length", value], 100).kind, "bad", value);
  assert.deepEqual([read("Transfer-Encoding", "chunked").chunked, read().contentLength], [true, undefined]);
});

test("too many lines are refused", () => {
  const raw = Array.from({ length: 202 }, () => "a");
  assert.equal(readRequestHead(raw, 100).kind, "too-many");
});

test("an empty token counts as none (incident 25)", () => {
  assert.equal(read("x-access-token", "").accessToken, undefined);
});
