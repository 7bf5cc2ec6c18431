// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { controlScopes } from "@space/model";
import { guestOperation, guestOperations, isBrief } from "./operations.ts";
import { type TransportRule, transportRules } from "./transport-rules.ts";

it("R-8: each operation names one scope, by its exact method and path", () => {
  assert.deepEqual(guestOperation("GET", "/files?path=%2Fa"), { scope: "files:read", class: "read" });
  assert.deepEqual(guestOperation("POST", "/process.Process/Start"), {
    scope: "process:run",
    class: "start",
  });
  for (const key of guestOperations) {
    const [method = "", path = ""] = key.split(" ");
    const operation = guestOperation(method, path);
    assert.ok(operation !== undefined && controlScopes.includes(operation.scope), key);
  }
});

it("R-8: what is not in the table has no operation", () => {
  for (const [method, path] of [
    ["get", "/files"],
    ["DELETE", "/files"],
    ["GET", "/files/"],
    ["GET", "//files"],
    ["GET", "/%66iles"],
    ["GET", "/x/../files"],
    ["GET", "/files#x"],
    ["GET", ""],
    ["", "constructor"],
    ["POST", "/process.Process/Anything"],
  ] as const) {
    assert.equal(guestOperation(method, path), undefined, `${method} ${path}`);
  }
});

/** The operations whose class the condition holds for. */
function operationsWhere(holds: (rule: TransportRule) => boolean): readonly string[] {
  return guestOperations.filter((key) => {
    const [method = "", path = ""] = key.split(" ");
    const operation = guestOperation(method, path);
    return operation !== undefined && holds(transportRules[operation.class]);
  });
}

it("R-28: nothing that changes a sandbox is presented again without its answer, but under a name", () => {
  const named = ["SendInput", "StreamInput"];
  const again = operationsWhere(({ unanswered }) => unanswered === "again").filter(
    (key) => !named.some((name) => key.endsWith(name)),
  );
  assert.deepEqual(again, [
    "GET /health",
    "GET /metrics",
    "GET /envs",
    "GET /files",
    "HEAD /files",
    "POST /filesystem.Filesystem/Stat",
    "POST /filesystem.Filesystem/ListDir",
    "POST /filesystem.Filesystem/WatchDir",
    "POST /process.Process/List",
    "GET /process/outcome",
    "POST /process.Process/Connect",
  ]);
  assert.deepEqual(
    operationsWhere(({ unanswered }) => unanswered === "ask"),
    ["POST /process.Process/Start"],
  );
  assert.equal(transportRules.port.unanswered, "tell");
});

it("a pause waits for every operation but those that last as long as somebody likes", () => {
  const openly = guestOperations.filter((key) => {
    const [method = "", path = ""] = key.split(" ");
    return !isBrief(method, path);
  });
  assert.deepEqual(openly, [
    "POST /filesystem.Filesystem/WatchDir",
    "POST /process.Process/Start",
    "POST /process.Process/Connect",
    "POST /process.Process/StreamInput",
  ]);
  assert.equal(isBrief("POST", "/process.Process/Anything"), false);
});
