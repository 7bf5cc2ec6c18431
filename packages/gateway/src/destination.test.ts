// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Destinations } from "./destination.ts";

const id = "iabcdefghij0123456789";
const none = { sandboxId: undefined, port: undefined };
const other = { sandboxId: "izzzzzzzzzzzzzzzzzzzz", port: "8080" };
const destinations = new Destinations();

test("the left-most label of the host names port and sandbox", () => {
  for (const host of [
    `49983-${id}.sbx.test`,
    `49983-${id}.sbx.test:38443`,
    `49983-${id}-oldclient.sbx.test`,
    `49983-${id.toUpperCase()}.SBX.test`,
    `49983-${id}`,
  ]) {
    assert.deepEqual(destinations.of(host, none), { kind: "sandbox", sandboxId: id, port: 49_983 }, host);
  }
});

test("a sandbox's own host wins over the routing headers", () => {
  assert.deepEqual(destinations.of(`80-${id}.sbx.test`, other), { kind: "sandbox", sandboxId: id, port: 80 });
});

test("headers name the sandbox on localhost, on an address and on sandbox.<anything>", () => {
  for (const host of [
    "localhost",
    "localhost:3002",
    "127.0.0.1:3002",
    "[::1]:3002",
    "::1",
    "sandbox.e2b.test:1",
  ])
    assert.deepEqual(
      destinations.of(host, { sandboxId: id, port: "8080" }),
      { kind: "sandbox", sandboxId: id, port: 8080 },
      host,
    );
});

test("headers name nothing on any other host", () => {
  for (const host of ["api.sbx.test", "sbx.test", "evil.example", "notsandbox.sbx.test", ""])
    assert.deepEqual(destinations.of(host, other), { kind: "api" }, host);
});

test("a shared host without routing headers is the API's", () => {
  for (const host of ["localhost", "127.0.0.1:3000", "sandbox.sbx.test"])
    assert.deepEqual(destinations.of(host, none), { kind: "api" }, host);
});

test("a bad port or id is refused, in the host as in the headers", () => {
  for (const host of [
    `0-${id}.a`,
    `65536-${id}.a`,
    `080-${id}.a`,
    "80-.a",
    "80-i_x.a",
    `80-${"a".repeat(65)}.a`,
  ])
    assert.equal(destinations.of(host, none).kind, "bad", host);
  for (const headers of [
    { sandboxId: id, port: undefined },
    { sandboxId: undefined, port: "80" },
    { sandboxId: id, port: "eighty" },
    { sandboxId: "../etc", port: "80" },
    { sandboxId: id.toUpperCase(), port: "80" },
  ])
    assert.equal(destinations.of("localhost", headers).kind, "bad");
  assert.equal(destinations.of(`${"a".repeat(256)}.test`, none).kind, "bad");
});

test("an id that is well formed but not ours names no sandbox", () => {
  assert.deepEqual(destinations.of("80-abc.sbx.test", none), { kind: "no-sandbox", text: "abc", port: 80 });
});

test("the memory of hosts is bounded", () => {
  const many = new Destinations();
  for (let at = 0; at < 10_000; at += 1) many.of(`h${at}.test`, none);
  assert.deepEqual(many.of(`80-${id}.sbx.test`, none), { kind: "sandbox", sandboxId: id, port: 80 });
});
