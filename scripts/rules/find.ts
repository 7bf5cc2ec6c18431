// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Tree, TreeFile } from "../boundaries/tree.ts";
import type { Rule } from "./table.ts";
import { testNames } from "./test-names.ts";

export interface Place {
  readonly path: string;
  readonly line: number;
}

export interface NamedPlace extends Place {
  readonly name: string;
}

export interface Found {
  readonly tests: readonly NamedPlace[];
  readonly cited: readonly Place[];
}

export interface FoundRules {
  readonly byNumber: ReadonlyMap<number, Found>;
  /** Numbers that are named or cited and that no rule has. */
  readonly unknown: readonly NamedPlace[];
}

const rulePattern = /\bR-([0-9]+)\b/g;

/** Where each rule is named by a test of a package, and where the packages' sources cite it. */
export function findRules(tree: Tree, rules: readonly Rule[]): FoundRules {
  const byNumber = new Map<number, Writable>(rules.map(({ number }) => [number, { tests: [], cited: [] }]));
  const unknown: NamedPlace[] = [];
  const at = (number: number, place: NamedPlace, add: (found: Writable) => void): void => {
    const found = byNumber.get(number);
    if (found === undefined) unknown.push({ ...place, name: `R-${number}` });
    else add(found);
  };
  for (const file of tree.files) {
    if (file.owner === "") continue;
    for (const place of testsOf(file)) {
      for (const number of numbersIn(place.name)) at(number, place, ({ tests }) => tests.push(place));
    }
    if (file.isTest || file.owner === "testing") continue;
    for (const { name, ...place } of linesOf(file)) {
      for (const number of numbersIn(name)) at(number, { ...place, name }, ({ cited }) => cited.push(place));
    }
  }
  return { byNumber, unknown };
}

interface Writable {
  readonly tests: NamedPlace[];
  readonly cited: Place[];
}

/** The suites that several test files run are in `testing`, in files that are not tests by their name. */
function testsOf({ path, text, isTest, owner, source }: TreeFile): readonly NamedPlace[] {
  if ((!isTest && owner !== "testing") || source === undefined) return [];
  return testNames(text, source).map((test) => ({ ...test, path }));
}

function linesOf({ path, text }: TreeFile): readonly NamedPlace[] {
  return text.split("\n").map((name, index) => ({ path, line: index + 1, name }));
}

function numbersIn(text: string): ReadonlySet<number> {
  return new Set([...text.matchAll(rulePattern)].map(([, number]) => Number(number)));
}
