// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Tree } from "../boundaries/tree.ts";
import { type NamedTest, testNames } from "../rules/test-names.ts";

/** A test that is named after an incident. */
export interface IncidentTest {
  readonly path: string;
  readonly line: number;
  readonly name: string;
  readonly numbers: readonly number[];
  /** Why it does not count; null when it does. */
  readonly problem: string | null;
}

/** `incident 5: …`, `R-21, incident 5: …`, `incident 30, 35: …`: the numbers stand before the first colon. */
const named = /^[^:]*\bincident ([0-9]+(?:, [0-9]+)*)\b[^:]*: /;
const proof = /(?<![.\w$])faultLanded\s*\(/g;
/** What is written down beforehand has not been seen to happen. */
const literal = /^(?:true|false|[0-9._]+n?|["'`]\s*["'`]|!0|!1)$/;

/**
 * The tests of more than one module that are named after incidents. One counts when its own body proves that its fault landed: every
 * `faultLanded(what, times)` in it has a count that the test has taken, and there is at least one.
 */
export function findIncidents(tree: Tree): readonly IncidentTest[] {
  return tree.files.flatMap(({ path, text, owner, source }) => {
    if (owner !== "testing" || source === undefined) return [];
    return testNames(text, source).flatMap((test): IncidentTest[] => {
      const match = named.exec(test.name);
      if (match?.[1] === undefined) return [];
      const numbers = match[1].split(", ").map(Number);
      return [{ path, line: test.line, name: test.name, numbers, problem: problemOf(test) }];
    });
  });
}

function problemOf({ code }: NamedTest): string | null {
  const counts = [...code.matchAll(proof)].map((match) => lastArgument(code, match.index + match[0].length));
  if (counts.length === 0) return "does not prove that its fault landed";
  const written = counts.find((count) => literal.test(count));
  return written === undefined ? null : `takes ${written} for a proof that its fault landed`;
}

/** The last argument of the call whose arguments begin here. */
function lastArgument(code: string, from: number): string {
  let depth = 0;
  let begin = from;
  let previous = from;
  for (let at = from; at < code.length; at += 1) {
    const char = code.charAt(at);
    if ("([{".includes(char)) depth += 1;
    if (char === "," && depth === 0) [previous, begin] = [begin, at + 1];
    if (!")]}".includes(char)) continue;
    if (depth === 0) {
      const last = code.slice(begin, at).trim();
      return last === "" ? code.slice(previous, begin - 1).trim() : last; // a comma after the last one
    }
    depth -= 1;
  }
  return "";
}
