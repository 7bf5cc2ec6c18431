// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Loads the real packages for a simulation, with differences that no product file knows of: some modules are asked for
// through one of this folder that stands in front of the real one, as `standIns` lists them; and a mutant's edits are made
// to the text of the files that it breaks.

import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Mutant } from "./mutant.ts";

const packages = pathToFileURL(resolve(import.meta.dirname, "../..")).href;
const standInFor = (file: string): string => pathToFileURL(resolve(import.meta.dirname, file)).href;

interface StandIn {
  readonly specifier: string;
  /** Whose importing of it is meant: every file of a folder, or one. */
  readonly from: readonly string[];
  readonly url: string;
}

const standIns: readonly StandIn[] = [
  {
    specifier: "node:crypto",
    from: ["capability/src/", "control-plane/src/access-tokens.ts"],
    url: standInFor("stand-in-crypto.ts"),
  },
  { specifier: "./jws.ts", from: ["capability/src/"], url: standInFor("remembered-jws.ts") },
  { specifier: "./sealed-segment.ts", from: ["capability/src/"], url: standInFor("remembered-sealed.ts") },
  { specifier: "./identity.ts", from: ["model/src/index.ts"], url: standInFor("remembered-identity.ts") },
  { specifier: "./byte-work.ts", from: ["snapshot/src/"], url: standInFor("plain-bytes.ts") },
  { specifier: "./sealed-chunk.ts", from: ["snapshot/src/"], url: standInFor("handed-chunks.ts") },
  { specifier: "./tenant-secrets.ts", from: ["snapshot/src/"], url: standInFor("plain-secrets.ts") },
  { specifier: "./json.ts", from: ["wire/src/"], url: standInFor("handed-json.ts") },
];

/** Must be called before anything of the product is imported. */
export function prepareLoading(mutant: Mutant | undefined): void {
  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL ?? "";
      const found = standIns.find(
        (standIn) =>
          standIn.specifier === specifier &&
          standIn.from.some((file) => parent.startsWith(`${packages}/${file}`)),
      );
      return found === undefined ? next(specifier, context) : { url: found.url, shortCircuit: true };
    },
    load(url, context, next) {
      const loaded = next(url, context);
      const edits = mutant?.edits.filter(({ file }) => url === `${packages}/${file}`) ?? [];
      if (edits.length === 0) return loaded;
      return { ...loaded, source: edits.reduce(edited, textOf(loaded.source)) };
    },
  });
}

/** Makes a mutant's edit. Throws when the text to replace is not there exactly once: the product has changed, and the mutant must follow. */
export function edited(source: string, { file, find, replace }: Mutant["edits"][number]): string {
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new TypeError(`the mutant's text occurs ${parts.length - 1} times in ${file}: ${find}`);
  return parts.join(replace);
}

function textOf(source: unknown): string {
  if (typeof source === "string") return source;
  if (source instanceof Uint8Array) return Buffer.from(source).toString("utf8");
  throw new TypeError("a module without text");
}
