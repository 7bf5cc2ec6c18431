// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { resolveImport } from "./import-rules.ts";
import type { Finding, Tree } from "./tree.ts";

/** Import cycles between files; an import of types alone counts. Each cycle is reported once. */
export function checkCycles(tree: Tree): readonly Finding[] {
  const edges = new Map<string, readonly string[]>();
  for (const file of tree.files) {
    const targets = (file.source?.imports ?? []).map(({ specifier }) => resolveImport(tree, file, specifier));
    edges.set(
      file.path,
      targets.filter((target) => target !== undefined),
    );
  }

  const findings: Finding[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): void => {
    const seenAt = trail.indexOf(path);
    if (seenAt !== -1) {
      const cycle = [...trail.slice(seenAt), path].join(" -> ");
      findings.push({ path, line: 1, rule: "cycle", message: cycle });
      return;
    }
    if (done.has(path)) return;
    trail.push(path);
    for (const next of edges.get(path) ?? []) visit(next);
    trail.pop();
    done.add(path);
  };
  for (const path of edges.keys()) visit(path);
  return findings;
}
