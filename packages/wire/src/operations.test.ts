// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { controlScopes } from "@space/model";
import { guestOperation, guestOperations } from "./operations.ts";

it("R-8: each operation names one scope, by its exact method and path", () => {
  assert.deepEqual(guestOperation("GET", "/files?path=%2Fa"), { scope: "files:read", class: "read" });
  assert.deepEqual(guestOperation("POST", "/process.Process/Start"), {
    scope: "process:run",
    class: "effect",
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

it("R-28: an operation that only reads is never one that changes", () => {
  const reads = guestOperations.filter((key) => {
    const [method = "", path = ""] = key.split(" ");
    return guestOperation(method, path)?.class === "read";
  });
  assert.ok(
    reads.every((key) => !/Start|Input|Signal|Update|Write|Move|Remove|Make|Create|compose/.test(key)),
  );
});
