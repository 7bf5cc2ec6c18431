// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Lists every incident with the tests that prove its fault landed and that the right thing came out, and fails for one
// without: `npm run incidents`, or `node scripts/incidents.ts [--json] [tree]`.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { readTree } from "./boundaries/tree.ts";
import { findIncidents, type IncidentTest } from "./incidents/find.ts";
import { type Incident, incidents } from "./incidents/table.ts";
import { lineWriter } from "./standard-output.ts";

interface Listed extends Incident {
  readonly tests: readonly IncidentTest[];
}

/** Writes the list, and returns the exit code. */
export function listIncidents(root: string, json: boolean, write: (line: string) => void): number {
  const found = findIncidents(readTree(root));
  const listed = incidents.map((incident): Listed => {
    const tests = found.filter(({ numbers }) => numbers.includes(incident.number));
    return { ...incident, tests };
  });
  const problems = [...untested(listed), ...found.flatMap((test) => [...problemsOf(test)])];
  if (json) write(JSON.stringify({ incidents: listed, problems }, undefined, 1));
  else for (const line of describe(listed, problems)) write(line);
  return problems.length === 0 ? 0 : 1;
}

function* untested(listed: readonly Listed[]): Generator<string> {
  for (const { number, tests } of listed)
    if (!tests.some(({ problem }) => problem === null)) yield `incident ${number} has no test that counts`;
}

function* problemsOf({ path, line, numbers, problem }: IncidentTest): Generator<string> {
  if (problem !== null) yield `${path}:${line}: ${problem}`;
  for (const number of numbers)
    if (!incidents.some((incident) => incident.number === number))
      yield `${path}:${line}: there is no incident ${number}`;
}

function* describe(listed: readonly Listed[], problems: readonly string[]): Generator<string> {
  for (const { number, symptom, open, tests } of listed) {
    yield `incident ${number}: ${symptom}`;
    if (open !== undefined) yield `    open: ${open}`;
    for (const { path, line, name } of tests) yield `    test  ${path}:${line}  ${name}`;
  }
  const tests = new Set(listed.flatMap((incident) => incident.tests));
  const open = listed.flatMap((incident) => (incident.open === undefined ? [] : [incident.number]));
  yield `incidents: ${listed.length} incidents, ${tests.size} tests that prove their fault landed`;
  yield `incidents: open in part: ${open.join(", ")}`;
  for (const problem of problems) yield `incidents: ${problem}`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { json: { type: "boolean", default: false }, quiet: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const root = positionals[0] ?? resolve(import.meta.dirname, "..");
  const write = lineWriter();
  process.exitCode = listIncidents(root, values.json, (line) => {
    if (!values.quiet || line.startsWith("incidents: ")) write(line);
  });
}
