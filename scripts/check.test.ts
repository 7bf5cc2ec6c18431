// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";

import { PlantedTree } from "./planted-tree.ts";

const names = [
  "types",
  "format:check",
  "lint:structure",
  "lint:types",
  "boundaries",
  "rules:check",
  "incidents:check",
  "test:unit",
];

function check(failing: readonly string[]): { readonly exitCode: number | null; readonly output: string } {
  using tree = new PlantedTree();
  const scripts = names.map((name) => [name, `echo ran-${name}${failing.includes(name) ? "; exit 3" : ""}`]);
  tree.write({ "package.json": JSON.stringify({ scripts: Object.fromEntries(scripts) }) });
  const run = spawnSync(process.execPath, [join(import.meta.dirname, "check.ts"), tree.root], {
    encoding: "utf8",
  });
  return { exitCode: run.status, output: run.stdout };
}

describe("check", () => {
  it("runs every check, and goes on after one that fails", () => {
    const { exitCode, output } = check(["format:check"]);
    assert.equal(exitCode, 1);
    for (const name of names) assert.match(output, new RegExp(`ran-${name}`));
    assert.match(output, /\ncheck: failed: format:check\n$/);
  });

  it("passes when all pass", () => {
    const { exitCode, output } = check([]);
    assert.equal(exitCode, 0);
    assert.match(output, /\ncheck: all passed\n$/);
  });
});
