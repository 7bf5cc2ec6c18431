// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { readStrictJson } from "./strict-json.ts";

const read = (text: string | Buffer): unknown => readStrictJson(Buffer.from(text), (value) => value);
const refused = (error: unknown): boolean => isSpaceError(error, "input/invalid");

it("R-6: reads the one text of a value", () => {
  for (const value of [{ a: [1, "é", { b: null }], c: true }, [], "\ud83d\ude00", -1.5, 0]) {
    assert.deepEqual(read(JSON.stringify(value)), value);
  }
});

it("R-6: refuses members that come twice, at any depth", () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":1}',
    '{"x":[{"a":1,"b":2,"a":3}]}',
    '{"__proto__":1,"__proto__":2}',
  ]) {
    assert.throws(() => read(text), refused, text);
  }
});

it("R-6: refuses a second spelling of a value", () => {
  for (const text of [" {}", "{} ", '{"a": 1}', '{"a":1.0}', "1e2", "-0", '"\\u0061"', '"\\/"', "[1,\n2]"]) {
    assert.throws(() => read(text), refused, text);
  }
});

it("R-6: refuses what is not JSON, and what is not UTF-8", () => {
  for (const text of ["", "{", "{a:1}", "[1,]", "NaN", "'a'", '{"a":1}{}', "\ufeff{}", '"\u0001"']) {
    assert.throws(() => read(text), refused, text);
  }
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
  ]) {
    assert.throws(() => read(Buffer.from(bytes)), refused);
  }
});

it("leaves a bug of the reader a bug, and lets it bound the depth before anything deep is written again", () => {
  const bug = new TypeError("bug");
  const fail = (): never => {
    throw bug;
  };
  const deep = "[".repeat(200_000) + "]".repeat(200_000);
  assert.throws(() => readStrictJson(Buffer.from(deep), fail), bug);
});
