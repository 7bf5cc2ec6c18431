// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { continuationOf, positionHeaders, readPosition, retainedBytes } from "./continuation.ts";
import { isReserved } from "./headers.ts";
import { guestOperation, guestOperations } from "./operations.ts";
import { streamWindowBytes } from "./stream-window.ts";

const key = "adm_abcdefghijklmnopqrstuvwxyz";

test("R-22: a position is said in headers that no caller or guest can send, and read back", () => {
  for (const position of [
    { key },
    { key, answerOffset: 0 },
    { key, answerOffset: Number.MAX_SAFE_INTEGER, bodyOffset: 7 },
  ]) {
    const headers = positionHeaders(position);
    assert.deepEqual(readPosition(["accept", "x", ...headers]), position);
    for (let at = 0; at < headers.length; at += 2) assert.ok(isReserved(headers[at] ?? ""));
  }
  assert.equal(readPosition(["accept", "x"]), undefined);
});

test("R-22: a position that is not of its form is refused", () => {
  const bad = [
    ["space-stream", ""],
    ["space-stream", "short"],
    ["space-stream", `${key}!`],
    ["space-stream", "x".repeat(65)],
    ["space-offset", "1"],
    ["space-body-offset", "1"],
    ...["", "-1", "01", "1.5", "1e3", " 1", "9007199254740993"].map((text) => [
      "space-stream",
      key,
      "space-offset",
      text,
    ]),
  ];
  for (const headers of bad) assert.throws(() => readPosition(headers), { code: "link/protocol" });
});

test("R-22: more is kept than both windows can hold, and at least 1 MiB", () => {
  assert.ok(retainedBytes > 2 * streamWindowBytes);
  assert.ok(retainedBytes >= 1024 * 1024);
});

test("R-22, R-28: a start goes on as an attachment, so that no continuation can start anything", () => {
  const continued = guestOperations.filter((name) => continuationOf(...split(name)) !== undefined);
  assert.deepEqual(continued.sort(), [
    "POST /filesystem.Filesystem/WatchDir",
    "POST /process.Process/Connect",
    "POST /process.Process/SendInput",
    "POST /process.Process/Start",
    "POST /process.Process/StreamInput",
  ]);
  for (const name of continued) {
    const path = continuationOf(...split(name))?.path ?? "";
    assert.notEqual(guestOperation("POST", path)?.class, "start");
  }
  assert.equal(continuationOf("GET", "/process.Process/Start"), undefined);
  assert.equal(continuationOf("POST", "/process.Process/Start?x"), undefined);
});

function split(operation: string): [string, string] {
  const [method = "", path = ""] = operation.split(" ");
  return [method, path];
}
