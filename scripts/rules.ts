// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Lists every rule of the identity protocol with the tests that name it and the lines that cite it, and fails for a rule
// without either: `npm run rules`, or `node scripts/rules.ts [--json] [tree]`.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { readTree } from "./boundaries/tree.ts";
import { type Found, findRules } from "./rules/find.ts";
import { type Rule, rules } from "./rules/table.ts";
import { lineWriter } from "./standard-output.ts";

interface Listed extends Rule, Found {
  readonly problem: string | null;
}

/** Writes the list, and returns the exit code. */
export function listRules(root: string, json: boolean, write: (line: string) => void): number {
  const { byNumber, unknown } = findRules(readTree(root), rules);
  const listed = rules.map((rule): Listed => {
    const found = byNumber.get(rule.number) ?? { tests: [], cited: [] };
    return { ...rule, ...found, problem: problemOf(rule, found) };
  });
  const problems = [
    ...listed.flatMap(({ number, problem }) => (problem === null ? [] : [`R-${number} ${problem}`])),
    ...unknown.map(({ path, line, name }) => `${path}:${line}: there is no ${name}`),
  ];
  if (json) write(JSON.stringify({ rules: listed, problems }, undefined, 1));
  else for (const line of describe(listed, problems)) write(line);
  return problems.length === 0 ? 0 : 1;
}

function problemOf({ isOpenWhole, isAwaited }: Rule, { tests, cited }: Found): string | null {
  if (isOpenWhole) return null;
  if (isAwaited && (tests.length === 0 || cited.length === 0)) return null;
  if (isAwaited) return "has come: take `isAwaited` out of its row in scripts/rules/table.ts";
  if (tests.length === 0) return "is named by no test";
  return cited.length === 0 ? "is cited by no line of the source" : null;
}

function* describe(listed: readonly Listed[], problems: readonly string[]): Generator<string> {
  for (const { number, title, open, isAwaited, tests, cited } of listed) {
    yield `R-${number}: ${title}`;
    if (isAwaited) yield "    NOT YET: being built";
    if (open !== undefined) yield `    open: ${open}`;
    for (const { path, line, name } of tests) yield `    test  ${path}:${line}  ${name}`;
    for (const { path, line } of cited) yield `    line  ${path}:${line}`;
  }
  const count = (key: "tests" | "cited"): number => listed.reduce((sum, rule) => sum + rule[key].length, 0);
  const those = (chosen: (rule: Rule) => boolean): string =>
    listed.flatMap((rule) => (chosen(rule) ? [`R-${rule.number}`] : [])).join(", ") || "none";
  yield `rules: ${listed.length} rules, ${count("tests")} tests name them, ${count("cited")} lines cite them`;
  yield `rules: open, or in part: ${those(({ open }) => open !== undefined)}`;
  yield `rules: not yet: ${those(({ isAwaited }) => isAwaited === true)}`;
  for (const problem of problems) yield `rules: ${problem}`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { json: { type: "boolean", default: false }, quiet: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const root = positionals[0] ?? resolve(import.meta.dirname, "..");
  const write = lineWriter();
  process.exitCode = listRules(root, values.json, (line) => {
    if (!values.quiet || line.startsWith("rules: ")) write(line);
  });
}
