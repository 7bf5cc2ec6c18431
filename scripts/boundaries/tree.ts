// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

import { readSource, type Source } from "./source.ts";

export interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string>>;
}

/** One file of the tree. `owner` is its package's folder name, or "" for what belongs to the root. */
export interface TreeFile {
  readonly path: string;
  readonly owner: string;
  readonly text: string;
  readonly isTest: boolean;
  /** Only for TypeScript. */
  readonly source: Source | undefined;
}

export interface Tree {
  readonly files: readonly TreeFile[];
  /** By package folder; "" is the root's own. */
  readonly manifests: ReadonlyMap<string, Manifest>;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

const sourceExtensions = new Set([".ts", ".mts", ".js", ".mjs", ".c", ".h", ".proto", ".sql", ".sh", ".py"]);
const skippedFolders = new Set(["node_modules", "build", "coverage", "gen", "vectors"]);
const shellScripts = ["space", ".ci/run"];

export function readTree(root: string): Tree {
  const manifests = new Map<string, Manifest>();
  const files: TreeFile[] = [];
  const add = (owner: string, path: string): void => {
    files.push(readTreeFile(root, owner, path));
  };

  manifests.set("", readManifest(root, "package.json"));
  for (const folder of foldersOf(root, "packages")) {
    manifests.set(folder, readManifest(root, `packages/${folder}/package.json`));
    for (const path of sourcesUnder(root, `packages/${folder}`)) add(folder, path);
  }
  for (const path of sourcesUnder(root, "scripts")) add("", path);
  for (const path of shellScripts) if (existsSync(join(root, path))) add("", path);
  return { files, manifests };
}

function readTreeFile(root: string, owner: string, path: string): TreeFile {
  const text = readFileSync(join(root, path), "utf8");
  const isTest = path.endsWith(".test.ts");
  const source = extname(path) === ".ts" ? readSource(text) : undefined;
  return { path, owner, text, isTest, source };
}

function readManifest(root: string, path: string): Manifest {
  return JSON.parse(readFileSync(join(root, path), "utf8")) as Manifest; // cast: npm refuses a malformed manifest
}

function foldersOf(root: string, path: string): readonly string[] {
  if (!existsSync(join(root, path))) return [];
  const entries = readdirSync(join(root, path), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

function* sourcesUnder(root: string, path: string): Generator<string> {
  if (!existsSync(join(root, path))) return;
  for (const entry of readdirSync(join(root, path), { withFileTypes: true })) {
    const inner = `${path}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!skippedFolders.has(entry.name)) yield* sourcesUnder(root, inner);
    } else if (entry.isFile() && sourceExtensions.has(extname(entry.name))) {
      yield inner;
    }
  }
}
