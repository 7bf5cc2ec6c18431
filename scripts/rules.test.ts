// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";
import { PlantedTree, projectRoot } from "./planted-tree.ts";
import { rules } from "./rules/table.ts";
import { listRules } from "./rules.ts";

const testOf = (number: number, name = `R-${number}: holds`): string =>
  `it(${JSON.stringify(name)}, () => { assert.equal(f(), ${number}); });\n`;

const wholly = rules.filter(({ isOpenWhole, isAwaited }) => !isOpenWhole && !isAwaited);

/** A tree in which every rule that must has one test and one line, but for `without`, whose test is `text` instead. */
function plant(without: number, text: string, source = `// R-${without}\n`): PlantedTree {
  const others = wholly.filter(({ number }) => number !== without);
  const tree = new PlantedTree();
  tree.write({ "package.json": "{}" });
  tree.writeManifest("model");
  tree.write({
    "packages/model/src/a.ts": others.map(({ number }) => `// R-${number}\n`).join(""),
    "packages/model/src/a.test.ts": others.map(({ number }) => testOf(number)).join(""),
    "packages/model/src/b.ts": source,
    "packages/model/src/b.test.ts": text,
  });
  return tree;
}

function list(tree: PlantedTree): { readonly exitCode: number; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const exitCode = listRules(tree.root, false, (line) => lines.push(line));
  return { exitCode, lines };
}

const accepted: Readonly<Record<string, string>> = {
  "a test": testOf(5),
  "a number at the end of the name": testOf(5, "a chain holds (R-5)"),
  "a template": `test(\`R-5: \${what}\`, async (context) => { await f(context); });\n`,
  "a row of a table": 'for (const [name, f] of [["R-5: refused", f]]) it(name, () => f());\n',
  "a group": 'describe("R-5: groups", () => { it("holds", () => { f(); }); });\n',
  "a test skipped under a condition": 'it("R-5: holds", { skip }, () => { f(); });\n',
};

const refused: Readonly<Record<string, string>> = {
  nothing: "",
  "a comment": "// R-5\n",
  "a commented test": `// ${testOf(5)}`,
  "a message of an assertion": 'it("holds", () => { assert.equal(f(), 1, "R-5: why"); });\n',
  "a test without a body": 'it("R-5: holds");\n',
  "a test with an empty body": 'it("R-5: holds", () => {});\n',
  "a test with nothing but a comment": 'it("R-5: holds", () => { /* f(); */ });\n',
  "a skipped test": 'it.skip("R-5: holds", () => { f(); });\n',
  "a test that is always skipped": 'it("R-5: holds", { skip: true }, () => { f(); });\n',
  "a test yet to be written": 'it("R-5: holds", { todo: true }, () => { f(); });\n',
  "a row that no test takes its name from": 'f([["R-5: refused", f]]);\nit("holds", () => { f(); });\n',
  "another number": testOf(55, "R-6: R-5x R-51 AR-5 is not it").replace("R-51 ", ""),
};

describe("rules", () => {
  it("are R-1 to R-28, and open are R-17, R-18 and a part of R-19", () => {
    assert.deepEqual(
      rules.map(({ number }) => number),
      Array.from({ length: 28 }, (_, index) => index + 1),
    );
    const numbers = (chosen: typeof rules): readonly number[] => chosen.map(({ number }) => number);
    assert.deepEqual(numbers(rules.filter(({ open }) => open !== undefined)), [17, 18, 19]);
    assert.deepEqual(numbers(rules.filter(({ isOpenWhole }) => isOpenWhole)), [17, 18]);
  });

  for (const [what, text] of Object.entries(accepted)) {
    it(`counts ${what}`, () => {
      using tree = plant(5, text);
      const { exitCode, lines } = list(tree);
      assert.equal(exitCode, 0, lines.join("\n"));
      assert.ok(lines.some((line) => line.startsWith("    test  packages/model/src/b.test.ts:3")));
    });
  }

  for (const [what, text] of Object.entries(refused)) {
    it(`does not count ${what}`, () => {
      using tree = plant(5, text);
      const { exitCode, lines } = list(tree);
      assert.deepEqual([exitCode, lines.at(-1)], [1, "rules: R-5 is named by no test"]);
    });
  }

  it("refuses each rule without a test, and each that no line cites", () => {
    for (const { number } of wholly) {
      using untested = plant(number, "");
      assert.equal(list(untested).lines.at(-1), `rules: R-${number} is named by no test`);
      using uncited = plant(number, testOf(number), "");
      assert.equal(list(uncited).lines.at(-1), `rules: R-${number} is cited by no line of the source`);
    }
  });

  it("refuses a number that no rule has, in a test's name and in a source", () => {
    using tree = plant(5, testOf(5) + testOf(29), "// R-5, R-0\n");
    const { exitCode, lines } = list(tree);
    assert.equal(exitCode, 1);
    assert.match(lines.slice(-2).join("\n"), /b\.ts:3: there is no R-0[\s\S]*|there is no R-29/);
    assert.equal(lines.filter((line) => line.includes("there is no")).length, 2);
  });

  it("excuses what is awaited only until it comes", () => {
    const awaited = rules.find(({ isAwaited }) => isAwaited);
    if (awaited === undefined) return;
    using tree = plant(awaited.number, testOf(awaited.number));
    assert.match(list(tree).lines.at(-1) ?? "", /has come/);
  });

  it("exits with its verdict when run as a program, and says it as JSON", () => {
    const script = join(projectRoot, "scripts/rules.ts");
    using good = plant(5, testOf(5));
    const run = spawnSync(process.execPath, [script, "--json", good.root], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const said: unknown = JSON.parse(run.stdout);
    assert.ok(typeof said === "object" && said !== null && "rules" in said && Array.isArray(said.rules));
    assert.equal(said.rules.length, 28);
    using bad = plant(5, "");
    assert.equal(spawnSync(process.execPath, [script, "--quiet", bad.root]).status, 1);
  });
});
