// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";
import { incidents } from "./incidents/table.ts";
import { listIncidents } from "./incidents.ts";
import { PlantedTree, projectRoot } from "./planted-tree.ts";

const proven = 'faultLanded("it", seen.length);';
const testOf = (number: number, body = proven, name = `incident ${number}: holds`): string =>
  `test(${JSON.stringify(name)}, async () => { await f(); ${body} });\n`;

/** A tree in which every incident has its test, but for `without`, whose tests are `text` instead. */
function plant(without: number, text: string, path = "packages/testing/incidents/b.test.ts"): PlantedTree {
  const tree = new PlantedTree();
  const others = incidents.filter(({ number }) => number !== without);
  tree.write({ "package.json": "{}" });
  tree.writeManifest("testing");
  tree.writeManifest("model");
  tree.write({
    "packages/testing/incidents/a.test.ts": others.map(({ number }) => testOf(number)).join(""),
    [path]: text,
  });
  return tree;
}

function list(tree: PlantedTree): { readonly exitCode: number; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const exitCode = listIncidents(tree.root, false, (line) => lines.push(line));
  return { exitCode, lines };
}

const accepted: Readonly<Record<string, string>> = {
  "a test that proves its fault": testOf(5),
  "one that names a rule too": testOf(5, proven, "R-21, incident 5: holds"),
  "one of several incidents": testOf(5, proven, "incident 5, 8: holds"),
  "one whose proof is a call of its own": testOf(5, 'faultLanded("it", count(a, b));'),
  "one skipped under a condition": `test("incident 5: holds", { skip }, () => { f(); ${proven} });\n`,
};

const refused: Readonly<Record<string, string>> = {
  nothing: "",
  "a test without a proof": testOf(5, ""),
  "a proof in a comment": testOf(5, `// ${proven}\n`),
  "a proof that was written down beforehand": testOf(5, 'faultLanded("it", 1);'),
  "a proof that is written as a sum of its own": testOf(5, `${proven} faultLanded("it", true,);`),
  "a proof outside of the test": `${testOf(5, "")}${proven}\n`,
  "a name that only mentions it": testOf(5, proven, "holds (incident 5)"),
  "a longer number": testOf(5, proven, "incident 55: holds").replace("55", "1"),
  "a test that is always skipped": `test("incident 5: holds", { skip: true }, () => { f(); ${proven} });\n`,
};

describe("incidents", () => {
  it("are the 28 of the design, each once, and none of them is excused", () => {
    const numbers = incidents.map(({ number }) => number);
    assert.deepEqual([numbers.length, new Set(numbers).size, Math.max(...numbers)], [28, 28, 36]);
    for (const number of numbers) {
      using tree = plant(number, "");
      const last = `incidents: incident ${number} has no test that counts`;
      assert.deepEqual(list(tree).lines.at(-1), last);
    }
  });

  for (const [what, text] of Object.entries(accepted)) {
    it(`counts ${what}`, () => {
      using tree = plant(5, text);
      const { exitCode, lines } = list(tree);
      assert.equal(exitCode, 0, lines.join("\n"));
    });
  }

  for (const [what, text] of Object.entries(refused)) {
    it(`does not count ${what}`, () => {
      using tree = plant(5, text);
      const { exitCode, lines } = list(tree);
      assert.equal(exitCode, 1);
      assert.ok(lines.includes("incidents: incident 5 has no test that counts"), lines.join("\n"));
    });
  }

  it("names each test that has its number and not its proof, also when another has both", () => {
    using tree = plant(5, testOf(5) + testOf(5, "") + testOf(5, 'faultLanded("it", 7);'));
    const { exitCode, lines } = list(tree);
    assert.equal(exitCode, 1);
    assert.deepEqual(lines.slice(-2), [
      "incidents: packages/testing/incidents/b.test.ts:4: does not prove that its fault landed",
      "incidents: packages/testing/incidents/b.test.ts:5: takes 7 for a proof that its fault landed",
    ]);
  });

  it("refuses a number that no incident has, and looks only where more than one module is tested", () => {
    using unknown = plant(5, testOf(5) + testOf(2));
    assert.match(list(unknown).lines.at(-1) ?? "", /b\.test\.ts:4: there is no incident 2$/);
    using elsewhere = plant(5, testOf(5), "packages/model/src/b.test.ts");
    assert.equal(list(elsewhere).lines.at(-1), "incidents: incident 5 has no test that counts");
  });

  it("exits with its verdict when run as a program, says it as JSON, and ends quietly when nobody reads on", () => {
    const script = join(projectRoot, "scripts/incidents.ts");
    using good = plant(5, testOf(5));
    const run = spawnSync(process.execPath, [script, "--json", good.root], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const said: unknown = JSON.parse(run.stdout);
    assert.ok(typeof said === "object" && said !== null && "incidents" in said);
    using bad = plant(5, "");
    assert.equal(spawnSync(process.execPath, [script, "--quiet", bad.root]).status, 1);
    for (const listing of [
      [script, good.root],
      [join(projectRoot, "scripts/rules.ts"), projectRoot],
    ]) {
      const piped = `"$@" | true; echo "\${PIPESTATUS[0]}"`;
      const cut = spawnSync("bash", ["-c", piped, "bash", process.execPath, ...listing], {
        encoding: "utf8",
      });
      assert.deepEqual([cut.stderr, cut.stdout], ["", "0\n"], listing[0]);
    }
  });
});
