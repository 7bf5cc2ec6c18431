// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The test files that look after several modules, as paths below the checkout. */
export interface TestGroups {
  /** May start sandboxes, or count what is left on the host: one at a time, and nothing beside them that starts any. */
  readonly onTheHost: readonly string[];
  /** Start nothing that anybody counts, so that they run beside the others. */
  readonly inProcess: readonly string[];
}

/** What a test has to reach to be able to start a program or to make anything on the host. */
const waysToTheHost: ReadonlySet<string> = new Set([
  "node:child_process",
  "@space/platform-linux",
  "@space/space",
  "@space/substrate-gvisor",
  "@space/substrate-namespace",
]);

/** These start programs too, of others or a few lines of their own, which nobody counts. */
const startStrangersOnly: ReadonlySet<string> = new Set([
  "packages/testing/contracts/runtime-record-store.test.ts",
  "packages/testing/contracts/s3-byte-store.test.ts",
  "packages/testing/contracts/sandbox-store-sqlite.test.ts",
]);

/** Simulations are a group of their own. */
const files = "packages/testing/!(sim|src|node_modules)/**/*.test.ts";

/** Splits the test files of a checkout by what each reaches through its imports. Throws where an import names no file. */
export function testGroups(checkout: string): TestGroups {
  const known = new Map<string, readonly string[]>();
  const importsOf = (file: string): readonly string[] => {
    const imports = known.get(file) ?? readImports(checkout, file);
    known.set(file, imports);
    return imports;
  };
  const isOnTheHost = (test: string): boolean => {
    const reached = new Set([test]);
    for (const name of reached) {
      if (waysToTheHost.has(name) && !(name === "node:child_process" && startStrangersOnly.has(test)))
        return true;
      if (name.endsWith(".ts")) for (const imported of importsOf(name)) reached.add(imported);
    }
    return false;
  };
  const onTheHost: string[] = [];
  const inProcess: string[] = [];
  for (const test of globSync(files, { cwd: checkout }).toSorted())
    (isOnTheHost(test) ? onTheHost : inProcess).push(test);
  return { onTheHost, inProcess };
}

/** What a source imports, files of its own package as their paths. What only looks like an import counts as one. */
function readImports(checkout: string, file: string): readonly string[] {
  const text = readFileSync(join(checkout, file), "utf8");
  const named = text.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"'\n]+)["']/g);
  return [...named].map(([, name = ""]) => (name.startsWith(".") ? join(dirname(file), name) : name));
}
