// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative } from "node:path";

const sources = join(import.meta.dirname, "..");
const modules = join(sources, "..", "..", "..", "node_modules");
/** Both stages of a start. */
const programs = ["portable-start.ts", "portable-guest.ts"];

/**
 * Writes the programs of a start as plain JavaScript, types erased: Node would load a compiler of 20 MB into every guest
 * otherwise, and be ready twice as late. Replaces what an earlier launcher has left. Returns the folder's `src`.
 */
export function writeErasedProgram(folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  const target = join(folder, "src");
  mkdirSync(join(target, "portable"), { recursive: true, mode: 0o755 });
  symlinkSync(modules, join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}\n');
  const written = new Set<string>();
  const write = (path: string): void => {
    if (written.has(path)) return;
    written.add(path);
    const { text, imports } = erase(readFileSync(path, "utf8"));
    writeFileSync(join(target, relative(sources, path).replace(/\.ts$/, ".js")), text);
    for (const name of imports) write(join(dirname(path), name));
  };
  for (const name of programs) write(join(sources, name));
  return target;
}

/** One module without its types, and the modules beside it that it imports. */
export function erase(source: string): { readonly text: string; readonly imports: readonly string[] } {
  const imports: string[] = [];
  const text = stripTypeScriptTypes(source).replace(
    /\b((?:from|import) ")(\.{1,2}\/[^"]+)\.ts"/g,
    (_, before: string, name: string) => {
      imports.push(`${name}.ts`);
      return `${before}${name}.js"`;
    },
  );
  return { text, imports };
}
