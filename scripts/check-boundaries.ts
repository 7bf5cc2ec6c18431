// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Refuses what the compiler and the linters cannot see: an import across the layers, a borrowed dependency, a cycle,
// ambient state in a use-case, a waiver without a reason. `node scripts/check-boundaries.ts [tree]`.

import { resolve } from "node:path";

import { checkCycles } from "./boundaries/cycles.ts";
import { checkImports, checkManifests } from "./boundaries/import-rules.ts";
import { checkText } from "./boundaries/text-rules.ts";
import { type Finding, readTree } from "./boundaries/tree.ts";

/** Checks the tree at `root`, writes each finding as a line, and returns the exit code. */
export function checkBoundaries(root: string, write: (line: string) => void): number {
  const tree = readTree(root);
  const sources = tree.files.filter((file) => file.owner !== "" && file.source !== undefined);
  if (sources.length === 0) {
    write(`no sources under ${root}/packages: nothing was checked`);
    return 1;
  }
  const findings: Finding[] = [...checkManifests(tree), ...checkCycles(tree)];
  for (const file of tree.files) findings.push(...checkText(file), ...checkImports(tree, file));

  for (const { path, line, rule, message } of findings) write(`${path}:${line}: [${rule}] ${message}`);
  write(`boundaries: ${tree.files.length} files, ${findings.length} findings`);
  return findings.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  const root = process.argv[2] ?? resolve(import.meta.dirname, "..");
  process.exitCode = checkBoundaries(root, (line) => {
    process.stdout.write(`${line}\n`);
  });
}
