// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Runs oxlint's type-aware rules. A cast or a `!` passes when its line says why: `// cast: <reason>`.
// `node scripts/lint-types.ts [tree]`.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

interface Diagnostic {
  readonly message: string;
  readonly code?: string;
  readonly filename: string;
  readonly labels: readonly {
    readonly span: { readonly offset: number; readonly length: number; readonly line: number };
  }[];
}

interface Report {
  readonly diagnostics: readonly Diagnostic[];
  readonly number_of_files: number;
}

const waivable = new Set(["typescript(no-unsafe-type-assertion)", "typescript(no-non-null-assertion)"]);
const reason = /\/\/ cast: \S.{2,}$/;

/** Lints the tree at `root`, writes each finding as a line, and returns the exit code. */
export function lintTypes(root: string, write: (line: string) => void): number {
  const oxlint = resolve(import.meta.dirname, "../node_modules/oxlint/bin/oxlint");
  const run = spawnSync(process.execPath, [oxlint, "--format", "json"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  const report = parseReport(run.stdout);
  if (report === undefined || report.number_of_files === 0) {
    write(`oxlint checked nothing (exit ${run.status ?? run.signal}): ${run.stderr || run.stdout}`);
    return 1;
  }
  const findings = report.diagnostics.filter((found) => !hasReason(root, found));
  for (const { filename, labels, code, message } of findings) {
    write(`${filename}:${labels[0]?.span.line ?? 1}: [${code ?? "oxlint"}] ${message}`);
  }
  write(`oxlint: ${report.number_of_files} files, ${findings.length} findings`);
  return findings.length === 0 ? 0 : 1;
}

function parseReport(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report; // cast: oxlint is pinned to one version, whose form this is
  } catch {
    return undefined; // a failed start prints prose; the caller reports it
  }
}

/** Whether the first or the last line of a cast states its reason. Spans count bytes. */
function hasReason(root: string, { code, filename, labels }: Diagnostic): boolean {
  const span = labels[0]?.span;
  if (code === undefined || !waivable.has(code) || span === undefined) return false;
  const bytes = readFileSync(join(root, filename));
  const lines = bytes.toString("utf8").split("\n");
  const spanned = bytes
    .subarray(span.offset, span.offset + span.length)
    .toString("utf8")
    .split("\n").length;
  return [span.line - 1, span.line + spanned - 2].some((index) => reason.test(lines[index] ?? ""));
}

if (import.meta.main) {
  process.exitCode = lintTypes(process.argv[2] ?? resolve(import.meta.dirname, ".."), (line) => {
    process.stdout.write(`${line}\n`);
  });
}
