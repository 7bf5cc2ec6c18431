// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Test files as paths below the checkout: those that look after several modules, or those that stand beside what they test. */
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
const acrossModules = ["packages/testing/!(sim|src|node_modules)/**/*.test.ts"];
const units = ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts"];

/** Splits the tests across modules by what each reaches through its imports. Throws where an import names no file. */
export function testGroups(checkout: string): TestGroups {
  return groups(checkout, acrossModules, (file) => readImports(checkout, file));
}

/** The same of unit tests; those that hold text which only looks like an import stay with those on the host. */
export function unitGroups(checkout: string): TestGroups {
  return groups(checkout, units, (file) =>
    existsSync(join(checkout, file)) ? readImports(checkout, file) : ["node:child_process"],
  );
}

function groups(
  checkout: string,
  files: readonly string[],
  read: (file: string) => readonly string[],
): TestGroups {
  const known = new Map<string, readonly string[]>();
  const importsOf = (file: string): readonly string[] => {
    const imports = known.get(file) ?? read(file);
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
  for (const test of globSync([...files], { cwd: checkout, exclude: ["**/node_modules/**"] }).toSorted())
    (isOnTheHost(test) ? onTheHost : inProcess).push(test);
  return { onTheHost, inProcess };
}

/** What a source imports, files of its own package as their paths. What only looks like an import counts as one. */
function readImports(checkout: string, file: string): readonly string[] {
  const text = readFileSync(join(checkout, file), "utf8");
  const named = text.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"'\n]+)["']/g);
  return [...named].map(([, name = ""]) => (name.startsWith(".") ? join(dirname(file), name) : name));
}
