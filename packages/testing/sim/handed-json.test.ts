// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret } from "@space/model";
import { decodeJson as realDecode, encodeJson as realEncode } from "@space/wire";
import { decodeJson, encodeJson } from "./handed-json.ts";
import { makeKeys } from "./stand-in-crypto.ts";

class Described {
  readonly hidden = 1n;
  toJSON(): unknown {
    return { shown: [this.hidden] };
  }
}

const values: readonly unknown[] = [
  null,
  0,
  Number.NaN,
  "text",
  true,
  12n,
  [],
  [undefined, null, () => 1, Symbol("x")],
  { rpc: "activate", params: { generation: 7n, none: undefined, list: [{ a: 1 }], of: { deep: [[]] } } },
  { $bigint: "1", $$x: { $: 2n } },
  { at: new Date(0), bytes: new Uint8Array([1, 2]), error: new TypeError("no"), described: new Described() },
  { secret: new Secret("never on the wire") },
];

const each = (real: boolean): readonly unknown[] => {
  makeKeys({ real, seed: () => Buffer.alloc(32, 1) });
  return values.map((value) => decodeJson(encodeJson(value)));
};

test("a value that is handed over arrives as its JSON would", () => {
  assert.deepEqual(
    each(false),
    values.map((value) => realDecode(realEncode(value))),
  );
});

test("in a world of real keys it travels as its text", () => {
  assert.deepEqual(each(true), each(false));
  makeKeys({ real: true, seed: () => Buffer.alloc(32, 1) });
  assert.equal(encodeJson({ a: 1n }), realEncode({ a: 1n }));
});

test("what arrives is nobody else's", () => {
  makeKeys({ real: false, seed: () => Buffer.alloc(32, 1) });
  const sent = { list: [1, 2], of: { name: "a" } };
  const text = encodeJson(sent);
  sent.list.push(3);
  sent.of.name = "b";
  assert.deepEqual(decodeJson(text), { list: [1, 2], of: { name: "a" } });
});

test("what has arrived arrives no second time", () => {
  makeKeys({ real: false, seed: () => Buffer.alloc(32, 1) });
  const text = encodeJson({});
  decodeJson(text);
  assert.throws(() => decodeJson(text), TypeError);
});
