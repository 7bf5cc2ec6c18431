// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { format, inspect } from "node:util";
import { Secret } from "./secret.ts";

it("never prints", () => {
  const secret = new Secret("hunter2");
  const holder = { name: "x", secret, list: [secret] };
  for (const text of [
    String(secret),
    ["", secret].join(""),
    JSON.stringify(holder),
    inspect(holder, { depth: 9, showHidden: true }),
    format("%s %o %j %O", secret, secret, secret, secret),
    Object.keys(secret).join(),
    JSON.stringify(Object.entries(secret)),
  ]) {
    assert.ok(!text.includes("hunter2"), text);
  }
  assert.equal(JSON.stringify(secret), '"[secret]"');
});

it("has one way to its value", () => {
  const bytes = new Uint8Array([1, 2]);
  assert.equal(new Secret(bytes).reveal(), bytes);
});
