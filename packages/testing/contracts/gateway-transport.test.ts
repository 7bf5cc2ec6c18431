// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// what a transport error does to each kind of operation, by the one table.

import assert from "node:assert/strict";
import { test } from "node:test";
import { guestOperation, guestOperations, transportRules } from "@space/wire";
import { GatewayRig } from "../src/gateway-rig.ts";

test("R-28: each operation of the agent is presented as often as the table says when no answer comes, and told when to try again", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.stream.reset("transport");
  for (const key of guestOperations) {
    const [method = "", path = ""] = key.split(" ");
    const { class: kind } = guestOperation(method, path) ?? assert.fail(key);
    const before = rig.worker.operations.length;
    const answer = await rig.fetch(path, method === "POST" ? { method, body: "{}" } : { method });
    const presented = rig.worker.operations.slice(before).map(({ head }) => head);
    assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"], key);
    assert.deepEqual(
      presented.map((head) => (head.path === path ? "itself" : head.path)),
      presentations[transportRules[kind].unanswered],
      key,
    );
    assert.equal(new Set(presented.map(({ admission }) => admission)).size, presented.length, "R-14");
  }
});

/** A start is asked for by its name, as an attachment: that starts nothing. */
const presentations = {
  again: ["itself", "itself"],
  ask: ["itself", "/process.Process/Connect"],
  tell: ["itself"],
} as const;

test("R-28: a user's own server gets a request once, whatever its method", async () => {
  await using rig = await GatewayRig.start();
  rig.worker.serve = (operation) => operation.stream.reset("transport");
  for (const [at, method] of ["GET", "HEAD", "POST", "DELETE"].entries()) {
    const answer = await rig.fetch("/", { method, headers: rig.routing(3000) });
    assert.deepEqual([answer.status, rig.worker.operations.length], [503, at + 1], method);
  }
});
