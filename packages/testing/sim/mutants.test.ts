// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { edited } from "./loader.ts";
import { mutants } from "./mutants.ts";

const packages = resolve(import.meta.dirname, "../..");

test("every mutant still finds the text that it breaks", () => {
  assert.ok(mutants.length >= 15);
  for (const { name, edits } of mutants) {
    const texts = new Map<string, string>();
    for (const edit of edits) {
      const before = texts.get(edit.file) ?? readFileSync(join(packages, edit.file), "utf8");
      texts.set(edit.file, edited(before, edit));
    }
    assert.ok(edits.length > 0, name);
  }
});

test("a mutant whose text is gone, or is there twice, is refused", () => {
  const edit = { file: "x", find: "a", replace: "b" };
  assert.equal(edited("xay", edit), "xby");
  assert.throws(() => edited("xy", edit), TypeError);
  assert.throws(() => edited("aa", edit), TypeError);
});
