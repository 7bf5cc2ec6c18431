// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { lineAt, type Source } from "../boundaries/source.ts";

/** A test that does something, by the name it is written with. */
export interface NamedTest {
  readonly line: number;
  readonly name: string;
  /** The call after its name, as code; empty for a row of a table. */
  readonly code: string;
}

const calls = /(?<![.\w$])(?:it|test|describe)\s*\(\s*(["'`])/g;
/** A row of a table of tests: its name comes first. */
const rows = /\[\s*(["'`])/g;
const callsByRow = /(?<![.\w$])(?:it|test)\s*\(\s*[A-Za-z_$]/;

/**
 * The tests of a file. A call counts when it has a body that calls something and is neither skipped nor yet to be
 * written; a row of a table when the file has a test that takes its name from one. `skip` under a condition counts.
 */
export function testNames(text: string, source: Source): readonly NamedTest[] {
  const { code } = source;
  const tests: NamedTest[] = [];
  const add = (match: RegExpExecArray, callCode: string): void => {
    const quoteAt = match.index + match[0].length - 1;
    const name = text.slice(quoteAt + 1, literalEnd(code, quoteAt));
    tests.push({ line: lineAt(text, quoteAt), name, code: callCode });
  };
  for (const match of code.matchAll(calls)) {
    const rest = afterName(code, match);
    if (doesSomething(rest)) add(match, rest);
  }
  if (callsByRow.test(code)) for (const match of code.matchAll(rows)) add(match, "");
  return tests;
}

/** Inside the literal everything is blanked, but for the expressions of a template. */
function literalEnd(code: string, quoteAt: number): number {
  const end = code.indexOf(code.charAt(quoteAt), quoteAt + 1);
  return end < 0 ? code.length : end;
}

function afterName(code: string, match: RegExpExecArray): string {
  const nameEnd = literalEnd(code, match.index + match[0].length - 1);
  return code.slice(nameEnd, callEnd(code, code.indexOf("(", match.index)));
}

function doesSomething(rest: string): boolean {
  const body = /(?:=>|\bfunction\b)([\s\S]*)$/.exec(rest);
  if (/\b(?:skip|todo)\s*:\s*true\b/.test(rest.slice(0, body?.index))) return false;
  return body?.[1] !== undefined && /[\w$)\]]\s*\(/.test(body[1]);
}

function callEnd(code: string, openAt: number): number {
  let depth = 0;
  for (let at = openAt; at < code.length; at += 1) {
    if (code.charAt(at) === "(") depth += 1;
    if (code.charAt(at) === ")") depth -= 1;
    if (depth === 0) return at;
  }
  return code.length;
}
