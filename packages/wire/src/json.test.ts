// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { decodeJson, encodeJson } from "./json.ts";

it("carries bigints among everything else", () => {
  const value = { a: [12n, -(2n ** 60n), { b: 0n }], c: "12", d: null, e: 1.5 };
  assert.equal(encodeJson({ a: 12n }), '{"a":{"$bigint":"12"}}');
  assert.deepEqual(decodeJson(encodeJson(value)), value);
});

it("does not take a user's names for its own", () => {
  for (const value of [
    { $bigint: "12" },
    { $bigint: "x", other: 1 },
    { $$bigint: "12" },
    { $: { $bigint: { $bigint: 1n } } },
    JSON.parse('{"__proto__":{"$a":1}}') as unknown,
  ]) {
    assert.deepEqual(decodeJson(encodeJson(value)), value);
  }
});

it("refuses a bigint of another form", () => {
  for (const text of [
    '{"$bigint":12}',
    '{"$bigint":"1.5"}',
    '{"$bigint":""}',
    '{"$bigint":"1","b":2}',
    `{"$bigint":"${"1".repeat(21)}"}`,
  ]) {
    assert.throws(
      () => decodeJson(text),
      (error) => isSpaceError(error, "link/protocol"),
      text,
    );
  }
});
