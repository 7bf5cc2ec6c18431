// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseSandboxId, Secret } from "@space/model";
import { AccessTokens, fileSignature } from "./access-tokens.ts";

const sandboxId = parseSandboxId(`i${"a".repeat(20)}`);
const other = parseSandboxId(`i${"b".repeat(20)}`);
const tokens = new AccessTokens(new Secret(new Uint8Array(32).fill(1)));

describe("access tokens", () => {
  test("are the same each time, differ by sandbox and installation, and are 64 hexadecimal digits", () => {
    const token = tokens.of(sandboxId).reveal();
    assert.match(token, /^[0-9a-f]{64}$/);
    assert.equal(tokens.of(sandboxId).reveal(), token);
    assert.notEqual(tokens.of(other).reveal(), token);
    const elsewhere = new AccessTokens(new Secret(new Uint8Array(32).fill(2)));
    assert.notEqual(elsewhere.of(sandboxId).reveal(), token);
  });

  test("match exactly, and nothing that is shorter, longer or another's", () => {
    const token = tokens.of(sandboxId).reveal();
    assert.equal(tokens.matches(sandboxId, new Secret(token)), true);
    const wrong = ["", token.slice(1), `${token}0`, token.toUpperCase(), tokens.of(other).reveal()];
    for (const shown of wrong) assert.equal(tokens.matches(sandboxId, new Secret(shown)), false);
  });

  test("a signature counts for exactly what was signed", () => {
    const of = { path: "/a b", operation: "read", username: "", expiresAtSeconds: 5 } as const;
    const signature = new Secret(fileSignature(of, tokens.of(sandboxId)));
    const shown = { kind: "file-signature", signature, ...of } as const;
    assert.equal(tokens.signed(sandboxId, shown), true);
    assert.equal(tokens.signed(other, shown), false);
    const others = [
      { path: "/a" },
      { operation: "write" },
      { username: "user" },
      { expiresAtSeconds: 6 },
      { expiresAtSeconds: undefined },
    ] as const;
    for (const change of others) assert.equal(tokens.signed(sandboxId, { ...shown, ...change }), false);
  });
});
