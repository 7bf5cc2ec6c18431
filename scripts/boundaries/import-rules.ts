// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isBuiltin } from "node:module";
import { join, posix } from "node:path";

import { type Layer, layers } from "./layers.ts";
import type { Import } from "./source.ts";
import type { Finding, Manifest, Tree, TreeFile } from "./tree.ts";

const scope = "@space/";

/** Each package has a row in the table, and its manifest declares nothing that the row refuses. */
export function checkManifests(tree: Tree): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [folder, manifest] of tree.manifests) {
    if (folder === "") continue;
    const path = `packages/${folder}/package.json`;
    const add = (message: string): void => {
      findings.push({ path, line: 1, rule: "layer", message });
    };
    const layer = layers[folder];
    if (layer === undefined) {
      add(`${folder} has no row in scripts/boundaries/layers.ts`);
      continue;
    }
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
      const target = name.startsWith(scope) ? name.slice(scope.length) : undefined;
      if (target !== undefined && !layer.packages.includes(target)) add(refusal(folder, target));
    }
  }
  return findings;
}

/** Every import of one file: downward only, declared, and only through the target's exports. */
export function checkImports(tree: Tree, file: TreeFile): readonly Finding[] {
  const findings: Finding[] = [];
  for (const imported of file.source?.imports ?? []) {
    const problem = problemOf(tree, file, imported);
    if (problem === undefined) continue;
    findings.push({ path: file.path, line: imported.line, rule: problem[0], message: problem[1] });
  }
  return findings;
}

/** The file of this tree that an import leads to, or undefined when it leads out of the tree. */
export function resolveImport(tree: Tree, file: TreeFile, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return posix.join(posix.dirname(file.path), specifier);
  const target = workspaceTarget(specifier);
  if (target === undefined) return undefined;
  const exported = tree.manifests.get(target.folder)?.exports?.[target.subpath];
  return exported === undefined ? undefined : join("packages", target.folder, exported);
}

type Problem = readonly [rule: string, message: string];

function problemOf(tree: Tree, file: TreeFile, imported: Import): Problem | undefined {
  const { specifier } = imported;
  const layer = layers[file.owner];
  if (specifier.startsWith(".")) return relativeProblem(file, specifier);
  if (isBuiltin(specifier)) return builtinProblem(file, layer, specifier);
  const target = workspaceTarget(specifier);
  if (target !== undefined) {
    if (layer?.packages.includes(target.folder) !== true)
      return ["layer", refusal(file.owner || "the root", target.folder)];
    if (tree.manifests.get(target.folder)?.exports?.[target.subpath] === undefined) {
      return ["exports", `${specifier} is not among the exports of ${target.folder}`];
    }
  } else if (layer?.thirdParty === "none" && !file.isTest) {
    return ["layer", `${file.owner} may import no package from outside the tree, so not ${specifier}`];
  }
  return isDeclared(tree.manifests.get(file.owner), file, specifier)
    ? undefined
    : ["declared", `${specifier} is not declared in the package.json of ${file.owner || "the root"}`];
}

function relativeProblem(file: TreeFile, specifier: string): Problem | undefined {
  const home = file.owner === "" ? "scripts/" : `packages/${file.owner}/`;
  const target = posix.join(posix.dirname(file.path), specifier);
  // The compiler takes "./a.js" for a.ts; Node, which runs the sources as they are, does not.
  if (!/\.(?:ts|json)$/.test(specifier))
    return ["path", `${specifier} must name a file as it is, with its .ts`];
  return target.startsWith(home)
    ? undefined
    : ["exports", `${specifier} reaches into another package's files`];
}

function builtinProblem(file: TreeFile, layer: Layer | undefined, specifier: string): Problem | undefined {
  if (!specifier.startsWith("node:")) return ["declared", `write node:${specifier}`];
  if (file.isTest || layer?.builtins === undefined || layer.builtins.includes(specifier)) return undefined;
  return ["layer", `${file.owner} may not import ${specifier}`];
}

function isDeclared(manifest: Manifest | undefined, file: TreeFile, specifier: string): boolean {
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const inSource = file.owner !== "" && !file.isTest;
  const declared = { ...manifest?.dependencies, ...(inSource ? {} : manifest?.devDependencies) };
  return Object.hasOwn(declared, name);
}

function workspaceTarget(
  specifier: string,
): { readonly folder: string; readonly subpath: string } | undefined {
  if (!specifier.startsWith(scope)) return undefined;
  const [folder = "", ...rest] = specifier.slice(scope.length).split("/");
  return { folder, subpath: rest.length === 0 ? "." : `./${rest.join("/")}` };
}

function refusal(from: string, to: string): string {
  return `${from} may not import ${to}`;
}
