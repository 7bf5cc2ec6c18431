// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The compiler and the linters are other people's work and are trusted only as far as they find planted faults.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";

import { lintTypes } from "./lint-types.ts";
import { PlantedTree, projectRoot } from "./planted-tree.ts";

interface Run {
  readonly exitCode: number | null;
  readonly output: string;
}

function run(tree: PlantedTree, program: string, ...args: readonly string[]): Run {
  const path = join(projectRoot, "node_modules", program);
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], {
    cwd: tree.root,
    encoding: "utf8",
  });
  return { exitCode: status, output: stdout + stderr };
}

const clean = `
import { it } from "node:test";

type Side = "left" | "right";

function unreachable(value: never): never {
  throw new TypeError(String(value));
}

export async function sign(side: Side): Promise<number> {
  await Promise.resolve();
  switch (side) {
    case "left":
      return -1;
    case "right":
      return 1;
    default:
      return unreachable(side);
  }
}

export function asSide(value: unknown): Side {
  return value as Side; // cast: a planted reason
}

it("may float", async () => {
  await sign("left");
});
`;

function plant(): PlantedTree {
  const tree = new PlantedTree();
  tree.useProjectSettings("biome.json", ".oxlintrc.json", "tsconfig.json");
  tree.write({ "package.json": '{ "type": "module" }\n' });
  tree.writeManifest("model");
  tree.write({ "packages/model/src/index.ts": clean });
  return tree;
}

/** Each fault gets a file of its own, so that a finding's file tells which fault it is. */
function plantEach(faults: Readonly<Record<string, string>>): PlantedTree {
  const tree = plant();
  for (const [name, text] of Object.entries(faults))
    tree.write({ [`packages/model/src/${name}.ts`]: `\n${text}\n` });
  return tree;
}

function assertNamed(output: string, found: Readonly<Record<string, string>>): void {
  for (const [name, code] of Object.entries(found)) {
    const named = output.split("\n").some((line) => line.includes(`src/${name}.ts`) && line.includes(code));
    assert.ok(named, `${code} in ${name}.ts is not among:\n${output}`);
  }
}

describe("the compiler's settings", () => {
  const tsc = (tree: PlantedTree): Run => run(tree, "typescript/bin/tsc", "-p", ".", "--pretty", "false");

  it("pass a clean tree", () => {
    using tree = plant();
    assert.deepEqual(tsc(tree), { exitCode: 0, output: "" });
  });

  it("refuse what each strict flag is for", () => {
    using tree = plantEach({
      "implicit-any": "export const f = (a) => a;",
      unchecked: "export const f = (a: number[]): number => a[0];",
      "exact-optional": "export const a: { b?: number } = { b: undefined };",
      enums: "export enum A { B }",
      "type-import": 'import { PathLike } from "node:fs"; export type A = PathLike;',
      "implicit-return": "export function f(a: number) { if (a > 1) return a; }",
      "fall-through": "export function f(a: number): void { switch (a) { case 1: f(2); case 2: f(3); } }",
      override: "class A { b(): void {} } export class C extends A { b(): void {} }",
      "index-signature": "export const f = (a: Record<string, number>): unknown => a.b;",
      unreachable: "export function f(): number { return 1; f(); }",
      dom: "export const a = document;",
    });
    const { exitCode, output } = tsc(tree);
    assert.notEqual(exitCode, 0);
    assertNamed(output, {
      "implicit-any": "TS7006",
      unchecked: "TS2322",
      "exact-optional": "TS2375",
      enums: "TS1294",
      "type-import": "TS1484",
      "implicit-return": "TS7030",
      "fall-through": "TS7029",
      override: "TS4114",
      "index-signature": "TS4111",
      unreachable: "TS7027",
      dom: "TS2584",
    });
  });
});

describe("the type-aware linter's settings", () => {
  const lint = (tree: PlantedTree): Run => {
    const lines: string[] = [];
    const exitCode = lintTypes(tree.root, (line) => lines.push(line));
    return { exitCode, output: lines.join("\n") };
  };

  it("pass a clean tree, floating tests and reasoned casts included", () => {
    using tree = plant();
    assert.deepEqual(lint(tree), { exitCode: 0, output: "oxlint: 1 files, 0 findings" });
  });

  it("refuse each planted fault", () => {
    const use = 'import { sign } from "./index.ts";';
    using tree = plantEach({
      floating: `${use} sign("left");`,
      misused: `${use} export const a = sign("left") ? 1 : 2;`,
      "for-each": `${use} ["left" as const].forEach(async (a) => { await sign(a); });`,
      exhaustive: 'export function f(a: "b" | "c"): void { switch (a) { case "b": f("c"); break; } }',
      "default-hides":
        'export function f(a: "b" | "c"): void { switch (a) { case "b": f("c"); break; default: f("b"); } }',
      rejects: 'export const f = (): Promise<never> => Promise.reject("text");',
      throws: 'export function f(): never { throw "text"; }',
      any: "export const f = (a: any): unknown => a;",
      cast: "export const f = (a: unknown): string => a as string;",
      "cast-elsewhere": "// cast: on another line\nexport const f = (a: unknown): string => a as string;",
      "non-null": "export const f = (a: string | undefined): string => a!;",
      unused: "const a = 1;",
      "stale-waiver": "// oxlint-disable-next-line no-unused-vars -- nothing here\nexport const a = 1;",
    });
    const { exitCode, output } = lint(tree);
    assert.equal(exitCode, 1);
    assertNamed(output, {
      floating: "no-floating-promises",
      misused: "no-misused-promises",
      "for-each": "no-misused-promises",
      exhaustive: "switch-exhaustiveness-check",
      "default-hides": "switch-exhaustiveness-check",
      rejects: "prefer-promise-reject-errors",
      throws: "only-throw-error",
      any: "no-explicit-any",
      cast: "no-unsafe-type-assertion",
      "cast-elsewhere": "no-unsafe-type-assertion",
      "non-null": "no-non-null-assertion",
      unused: "no-unused-vars",
      "stale-waiver": "directive",
    });
  });

  it("fail where there is nothing to lint", () => {
    using tree = new PlantedTree();
    tree.useProjectSettings(".oxlintrc.json");
    assert.equal(lint(tree).exitCode, 1);
  });
});

describe("the formatter's and structure linter's settings", () => {
  const biome = (tree: PlantedTree, ...args: readonly string[]): Run =>
    run(
      tree,
      "@biomejs/biome/bin/biome",
      ...args,
      "--error-on-warnings",
      "--reporter=github",
      "--max-diagnostics=none",
    );

  it("pass a clean tree", () => {
    using tree = plant();
    assert.deepEqual(biome(tree, "lint"), { exitCode: 0, output: "" });
  });

  it("refuse each planted fault", () => {
    const lines = (count: number): string => Array.from({ length: count }, (_, i) => `f(${i});`).join("\n");
    using tree = plantEach({
      "long-file": `export const f = (_: number): void => {};\n${lines(400)}`,
      "long-function": `export function f(_: number): void {\n${lines(82)}\n}`,
      "cycle-a": 'import type { B } from "./cycle-b.ts";\nexport type A = B;',
      "cycle-b": 'import type { A } from "./cycle-a.ts";\nexport type B = A;',
      undeclared: 'import fc from "fast-check";\nexport const a = fc;',
      "default-export": "export default 1;",
      "re-export-all": 'export * from "./index.ts";',
      Misnamed: "export const a = 1;",
    });
    tree.write({
      "packages/model/src/long.test.ts": `\nexport function f(_: number): void {\n${lines(82)}\n}\n`,
    });
    const { exitCode, output } = biome(tree, "lint");
    assert.notEqual(exitCode, 0);
    assertNamed(output, {
      "long-file": "noExcessiveLinesPerFile",
      "long-function": "noExcessiveLinesPerFunction",
      "cycle-a": "noImportCycles",
      undeclared: "noUndeclaredDependencies",
      "default-export": "noDefaultExport",
      "re-export-all": "noReExportAll",
      Misnamed: "useFilenamingConvention",
    });
    assert.doesNotMatch(output, /long\.test\.ts/, "tests may have long functions");
  });

  it("refuse unformatted code and unsorted imports", () => {
    using tree = plantEach({
      format: "export const a = { b : 'c' }",
      order:
        'import { join } from "node:path";\nimport { readFileSync } from "node:fs";\nexport { join, readFileSync };',
    });
    const { exitCode, output } = biome(tree, "check", "--linter-enabled=false");
    assert.notEqual(exitCode, 0);
    assertNamed(output, { format: "format", order: "organizeImports" });
  });
});
