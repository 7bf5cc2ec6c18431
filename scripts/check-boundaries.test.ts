// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";

import { layers } from "./boundaries/layers.ts";
import { checkBoundaries } from "./check-boundaries.ts";
import { PlantedTree, projectRoot } from "./planted-tree.ts";

/** A small tree without a fault, in which each refused thing appears once where it is allowed. */
function plantClean(): PlantedTree {
  const tree = new PlantedTree();
  tree.write({ "package.json": "{}" });
  tree.writeManifest("model");
  tree.writeManifest("capability", {
    dependencies: { "@space/model": "0.1.0" },
    devDependencies: { "fast-check": "4" },
  });
  tree.writeManifest("gateway", { dependencies: { "@space/model": "0.1.0", kysely: "1" } });
  tree.writeManifest("worker");
  tree.writeManifest("mtls");
  tree.writeManifest("testing", { dependencies: { "@space/gateway": "0.1.0" } });
  tree.write({
    "packages/model/src/index.ts": 'export { a } from "./a.ts";\n',
    "packages/model/src/a.ts":
      "export const a = 1; // Date.now is refused here, and this only speaks of it\n",
    "packages/capability/src/index.ts":
      'import { sign } from "node:crypto";\nimport { a } from "@space/model";\n',
    "packages/capability/src/a.test.ts": 'import it from "node:test";\nimport fc from "fast-check";\n',
    "packages/gateway/src/index.ts": 'import { a } from "@space/model";\nimport { sql } from "kysely";\n',
    "packages/gateway/src/a.test.ts": "const now = Date.now();\n",
    "packages/worker/src/index.ts":
      "// biome-ignore lint/style/x: the reason is given\nexport const b = 'process.env';\n",
    "packages/mtls/src/index.ts": "export const now = Date.now();\n",
    "packages/testing/src/index.ts": 'import { a } from "@space/gateway";\n',
  });
  return tree;
}

function check(tree: PlantedTree): { readonly exitCode: number; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const exitCode = checkBoundaries(tree.root, (line) => lines.push(line));
  return { exitCode, lines };
}

interface Fault {
  readonly rule: string;
  readonly what: string;
  readonly path: string;
  readonly text: string;
}

const unfinished = ["TO", "DO"].join("");
const faults: readonly Fault[] = [
  {
    rule: "layer",
    what: "an import upwards",
    path: "packages/model/src/x.ts",
    text: 'import "@space/gateway";',
  },
  {
    rule: "layer",
    what: "a type import of a sibling",
    path: "packages/worker/src/x.ts",
    text: 'import type { A } from "@space/gateway";',
  },
  {
    rule: "layer",
    what: "testing, from a unit test",
    path: "packages/gateway/src/x.test.ts",
    text: 'import "@space/testing";',
  },
  {
    rule: "layer",
    what: "a builtin outside the list",
    path: "packages/capability/src/x.ts",
    text: 'import "node:fs";',
  },
  {
    rule: "layer",
    what: "a third party in a pure package",
    path: "packages/capability/src/x.ts",
    text: 'import "fast-check";',
  },
  { rule: "layer", what: "an import from the scripts", path: "scripts/x.ts", text: 'import "@space/model";' },
  {
    rule: "exports",
    what: "a path past the exports",
    path: "packages/gateway/src/x.ts",
    text: 'import "@space/model/src/a.ts";',
  },
  {
    rule: "exports",
    what: "a relative path into a sibling",
    path: "packages/gateway/src/x.ts",
    text: 'import "../../model/src/a.ts";',
  },
  {
    rule: "declared",
    what: "an undeclared third party",
    path: "packages/gateway/src/x.ts",
    text: 'import "pino";',
  },
  {
    rule: "declared",
    what: "an undeclared package of the tree",
    path: "packages/worker/src/x.ts",
    text: 'import "@space/model";',
  },
  {
    rule: "declared",
    what: "a builtin without its prefix",
    path: "packages/gateway/src/x.ts",
    text: 'import "fs";',
  },
  {
    rule: "path",
    what: "a path that only the compiler finds",
    path: "packages/model/src/x.ts",
    text: 'import "./a.js";',
  },
  {
    rule: "cycle",
    what: "a cycle of types alone",
    path: "packages/model/src/a.ts",
    text: 'import type { A } from "./index.ts";',
  },
  {
    rule: "cycle",
    what: "a file that imports itself",
    path: "packages/gateway/src/index.ts",
    text: 'import "./index.ts";',
  },
  { rule: "ambient", what: "the clock", path: "packages/gateway/src/x.ts", text: "const a = Date.now();" },
  {
    rule: "ambient",
    what: "the clock by construction",
    path: "packages/gateway/src/x.ts",
    text: "const a = new Date();",
  },
  {
    rule: "ambient",
    what: "the monotonic clock",
    path: "packages/gateway/src/x.ts",
    text: "const a = performance.now();",
  },
  { rule: "ambient", what: "chance", path: "packages/model/src/x.ts", text: "const a = Math.random();" },
  {
    rule: "ambient",
    what: "the environment",
    path: "packages/worker/src/x.ts",
    text: "const a = process.env;",
  },
  {
    rule: "ambient",
    what: "the environment by import",
    path: "packages/worker/src/x.ts",
    text: 'import { env } from "node:process";',
  },
  { rule: "ambient", what: "the network", path: "packages/gateway/src/x.ts", text: "await fetch(url);" },
  {
    rule: "unfinished",
    what: "unfinished work",
    path: "packages/gateway/src/x.ts",
    text: `// ${unfinished}: later`,
  },
  { rule: "any", what: "a cast to any", path: "packages/gateway/src/x.test.ts", text: "const a = b as any;" },
  {
    rule: "waiver",
    what: "a bare biome-ignore",
    path: "packages/gateway/src/x.ts",
    text: "// biome-ignore lint/style/x: <explanation>",
  },
  {
    rule: "waiver",
    what: "a bare oxlint-disable",
    path: "packages/gateway/src/x.ts",
    text: "// oxlint-disable-next-line no-x",
  },
  {
    rule: "waiver",
    what: "a blanket oxlint-disable",
    path: "packages/gateway/src/x.ts",
    text: "/* oxlint-disable -- all of it */",
  },
  {
    rule: "waiver",
    what: "a bare expected error",
    path: "packages/gateway/src/x.ts",
    text: "// @ts-expect-error",
  },
  {
    rule: "waiver",
    what: "an ignored error",
    path: "packages/gateway/src/x.ts",
    text: "// @ts-ignore it is fine",
  },
  {
    rule: "waiver",
    what: "a cast without a reason",
    path: "packages/gateway/src/x.ts",
    text: "const a = b as C; // cast:",
  },
];

describe("check-boundaries", () => {
  it("passes a clean tree and says how much it read", () => {
    using tree = plantClean();
    assert.deepEqual(check(tree), { exitCode: 0, lines: ["boundaries: 9 files, 0 findings"] });
  });

  for (const { rule, what, path, text } of faults) {
    it(`refuses ${what}`, () => {
      using tree = plantClean();
      tree.write({ [path]: `${text}\n` });
      const { exitCode, lines } = check(tree);
      assert.equal(exitCode, 1);
      const named = lines.filter((line) => line.includes(`[${rule}]`) && line.includes(path));
      assert.equal(named.length, 1, lines.join("\n"));
      assert.equal(lines.length, 2, `only the planted fault is reported:\n${lines.join("\n")}`);
    });
  }

  it("refuses a source without its header", () => {
    using tree = plantClean();
    tree.write({ "packages/model/native/x.c": "int x;\n", "scripts/x.sh": "#!/bin/sh\n# Copyright\n" });
    const { exitCode, lines } = check(tree);
    assert.equal(exitCode, 1);
    assert.deepEqual(
      lines.slice(0, -1).map((line) => line.split(" ", 2).join(" ")),
      ["packages/model/native/x.c:1: [header]", "scripts/x.sh:1: [header]"],
    );
  });

  it("refuses a package without a row, and a manifest that declares what its row refuses", () => {
    using tree = plantClean();
    tree.writeManifest("newcomer");
    tree.writeManifest("worker", { dependencies: { "@space/gateway": "0.1.0" } });
    const { exitCode, lines } = check(tree);
    assert.equal(exitCode, 1);
    assert.match(lines.join("\n"), /newcomer has no row/);
    assert.match(lines.join("\n"), /worker may not import gateway/);
  });

  it("refuses a tree in which it finds nothing to check", () => {
    using tree = new PlantedTree();
    tree.write({ "package.json": "{}", "packages/model/package.json": "{}" });
    const { exitCode, lines } = check(tree);
    assert.equal(exitCode, 1);
    assert.match(lines.join("\n"), /nothing was checked/);
  });

  it("exits with its verdict when run as a program", () => {
    using tree = plantClean();
    const script = join(projectRoot, "scripts/check-boundaries.ts");
    assert.equal(spawnSync(process.execPath, [script, tree.root]).status, 0);
    tree.write({ "packages/model/src/x.ts": "const a = Date.now();\n" });
    assert.equal(spawnSync(process.execPath, [script, tree.root]).status, 1);
  });

  it("has a table in which imports go only downward", () => {
    const below = (name: string, trail: readonly string[]): void => {
      assert.ok(!trail.includes(name), [...trail, name].join(" -> "));
      for (const next of layers[name]?.packages ?? []) {
        assert.ok(Object.hasOwn(layers, next), `${name} names ${next}, which has no row`);
        below(next, [...trail, name]);
      }
    };
    for (const name of Object.keys(layers)) below(name, []);
  });
});
