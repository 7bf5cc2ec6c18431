// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { readSource } from "./source.ts";

const specifiers = (text: string): readonly string[] =>
  readSource(text).imports.map((found) => found.specifier);

describe("readSource", () => {
  it("finds every form of import, types included", () => {
    const text = [
      'import a, { b } from "static";',
      'import type { T } from "types";',
      'import {\n  c,\n  d,\n} from "multi-line";',
      'import "side-effect";',
      'export { e } from "re-export";',
      'export type * as F from "re-export-types";',
      'export interface G { text: string }\nimport h from "after-a-block";',
      'const i = await import("dynamic");',
      'type J = import("type-query").J;',
      'const k = require("required");',
      'const l = import.meta.resolve("resolved");',
    ].join("\n");
    assert.deepEqual([...specifiers(text)].sort(), [
      "after-a-block",
      "dynamic",
      "multi-line",
      "re-export",
      "re-export-types",
      "required",
      "resolved",
      "side-effect",
      "static",
      "type-query",
      "types",
    ]);
  });

  it("finds no import in comments, strings and templates", () => {
    const text = [
      '// import a from "comment";',
      '/* import b from "block"; */',
      "const c = 'import d from \"string\"';",
      'const e = `import f from "template"`;',
    ].join("\n");
    assert.deepEqual(specifiers(text), []);
  });

  it("blanks comments, strings and regular expressions and keeps positions", () => {
    const text = "const a = 'x'; // y\nconst b = /[/\"']z/g.test(c) / 2; d();";
    const { code } = readSource(text);
    assert.equal(code.length, text.length);
    assert.equal(code.split("\n").length, 2);
    assert.doesNotMatch(code, /[xyz]/);
    assert.equal(code.indexOf("d()"), text.indexOf("d()"));
  });

  it("reads the code inside templates, nested ones too", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the sample is source text
    const { code } = readSource("const a = `b ${c({ d: `e ${f} g` })} h`; i();");
    for (const name of ["c", "d", "f", "i"]) assert.match(code, new RegExp(`\\b${name}\\b`));
    for (const name of ["b", "e", "g", "h"]) assert.doesNotMatch(code, new RegExp(`\\b${name}\\b`));
  });

  it("gives each comment its line", () => {
    const { comments } = readSource("a;\n// one\nb; /* two\n */ c;");
    assert.deepEqual(
      comments.map(({ line }) => line),
      [2, 3],
    );
  });
});
