// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { headerValue, isReserved, passableHeaders } from "./headers.ts";

it("R-14: knows its own prefix", () => {
  assert.deepEqual(["space-admitted", "space-", "spaced", "x-space-"].map(isReserved), [
    true,
    true,
    false,
    false,
  ]);
});

it("R-14: passes nothing that begins with the prefix, however it is written", () => {
  const raw = ["Space-Admitted", "x", "SPACE-VERDICT", "refresh-route", "Accept", "a"];
  assert.deepEqual(passableHeaders(raw), ["accept", "a"]);
});

it("passes no header of one hop, nor one that connection names", () => {
  const raw = [
    ["Connection", "close, X-Own"],
    ["X-Own", "1"],
    ["Transfer-Encoding", "chunked"],
    ["TE", "trailers"],
    ["Keep-Alive", "1"],
    ["Upgrade", "websocket"],
    [":path", "/"],
    ["Content-Type", "text/plain"],
  ].flat();
  assert.deepEqual(passableHeaders(raw), ["content-type", "text/plain"]);
});

it("keeps what an upgrade needs, and drops what it is told to", () => {
  const raw = ["Connection", "Upgrade", "Upgrade", "websocket", "Cookie", "a=b", "X-A", "1"];
  const headers = passableHeaders(raw, {
    keep: new Set(["connection", "upgrade"]),
    drop: new Set(["cookie"]),
  });
  assert.deepEqual(headers, ["connection", "Upgrade", "upgrade", "websocket", "x-a", "1"]);
});

it("never keeps a reserved header, also when told to", () => {
  assert.deepEqual(passableHeaders(["space-x", "1"], { keep: new Set(["space-x"]) }), []);
});

it("keeps repeated headers in order, and ignores a name without a value", () => {
  assert.deepEqual(passableHeaders(["B", "1", "a", "2", "b", "3", "odd"]), ["b", "1", "a", "2", "b", "3"]);
});

it("finds the first value by its exact name", () => {
  const headers = ["a", "1", "b", "2", "b", "3"];
  assert.deepEqual([headerValue(headers, "b"), headerValue(headers, "2")], ["2", undefined]);
});
