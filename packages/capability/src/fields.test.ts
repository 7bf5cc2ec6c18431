// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { parse32Bytes, parseCount, parseList, parseName, parseSeconds } from "./fields.ts";

const refuses = (parse: (value: unknown) => unknown, values: readonly unknown[]): void => {
  for (const value of values) {
    assert.throws(
      () => parse(value),
      (error) => isSpaceError(error, "input/invalid"),
      String(value),
    );
  }
};

it("R-7: times are whole seconds from 1970 to 9999", () => {
  assert.equal(parseSeconds(0, "t"), 0);
  assert.equal(parseSeconds(253_402_300_799, "t"), 253_402_300_799);
  refuses((value) => parseSeconds(value, "t"), [-1, 0.5, 253_402_300_800, Number.NaN, "1", null, 1n]);
});

it("counts are whole numbers from their least", () => {
  assert.equal(parseCount(2, "n", 2), 2);
  refuses((value) => parseCount(value, "n", 2), [1, 2.5, 2 ** 53, "2"]);
});

it("names are short printable ASCII", () => {
  assert.equal(parseName("a b~", "n"), "a b~");
  refuses((value) => parseName(value, "n"), ["", "x".repeat(129), "é", "a\n", 1]);
});

it("32 bytes have one text", () => {
  const text = Buffer.alloc(32, 0xff).toString("base64url");
  assert.equal(parse32Bytes(text, "b"), text);
  const withBitsLeft = `${text.slice(0, -1)}9`;
  refuses(
    (value) => parse32Bytes(value, "b"),
    [withBitsLeft, `${text}=`, text.slice(1), text.replaceAll("_", "/"), 1],
  );
});

it("lists have a limit", () => {
  assert.deepEqual(parseList([1], "l", 1), [1]);
  refuses((value) => parseList(value, "l", 1), [[1, 2], {}, "a"]);
});
