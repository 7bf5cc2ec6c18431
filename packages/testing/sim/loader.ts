// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Loads the real packages for a simulation, with four differences that no product file knows of: the capability package
// and the access tokens get stand-in-crypto.ts in place of `node:crypto`, the capability package asks remembered-jws.ts
// before its own `jws.ts`, the snapshot package gets plain-bytes.ts and plain-secrets.ts in place of its `byte-work.ts` and
// `tenant-secrets.ts`, and a mutant's edits are made to the text of the files that it breaks.

import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Mutant } from "./mutant.ts";

const packages = pathToFileURL(resolve(import.meta.dirname, "../..")).href;
const accessTokens = `${packages}/control-plane/src/access-tokens.ts`;
const standIn = pathToFileURL(resolve(import.meta.dirname, "stand-in-crypto.ts")).href;
const plain: Readonly<Record<string, string>> = {
  "./byte-work.ts": pathToFileURL(resolve(import.meta.dirname, "plain-bytes.ts")).href,
  "./tenant-secrets.ts": pathToFileURL(resolve(import.meta.dirname, "plain-secrets.ts")).href,
};
const remembered = pathToFileURL(resolve(import.meta.dirname, "remembered-jws.ts")).href;

/** Must be called before anything of the product is imported. */
export function prepareLoading(mutant: Mutant | undefined): void {
  registerHooks({
    resolve(specifier, context, next) {
      const from = context.parentURL ?? "";
      const isCapability = from.startsWith(`${packages}/capability/src/`);
      const isSigner = isCapability || from === accessTokens;
      if (specifier === "node:crypto" && isSigner) return { url: standIn, shortCircuit: true };
      if (specifier === "./jws.ts" && isCapability) return { url: remembered, shortCircuit: true };
      const url = from.startsWith(`${packages}/snapshot/src/`) ? plain[specifier] : undefined;
      if (url !== undefined) return { url, shortCircuit: true };
      return next(specifier, context);
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
