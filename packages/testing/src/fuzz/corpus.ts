// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Where the inputs of a target are kept that once gave a new kind of answer. */
export function corpusFolder(target: string): string {
  return resolve(import.meta.dirname, "../../corpus", target);
}

export function readCorpus(target: string): readonly Buffer[] {
  const folder = corpusFolder(target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(join(folder, name)));
}
