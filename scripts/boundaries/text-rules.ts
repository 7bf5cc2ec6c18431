// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { layers } from "./layers.ts";
import { lineAt } from "./source.ts";
import type { Finding, TreeFile } from "./tree.ts";

const header =
  /^(?:#!.*\n)?(\/\/|#|--) SPDX-License-Identifier: Apache-2\.0\n\1 Copyright 2026 The SPACE authors\n/;

// Spelt with a class so that this file does not hold the words it refuses.
const unfinished = /\b(?:TO[D]O|FIX[M]E)\b/g;

const ambient: readonly (readonly [RegExp, string])[] = [
  [/\bprocess\s*(?:\?\.|\.)\s*env\b|\bprocess\s*\[/g, "process.env"],
  [/\bimport\s*\{[^}]*\benv\b[^}]*\}\s*from\s*"\s+"/g, "process.env"],
  [/(?<![.\w$#])fetch\s*\(|\bglobalThis\s*\.\s*fetch\b|=\s*fetch\s*[;,)]/g, "global fetch"],
  [/\bDate\s*\.\s*now\b|\bnew\s+Date\s*(?:\(\s*\)|(?![\s(\w]))/g, "Date.now"],
  [/\bMath\s*\.\s*random\b/g, "Math.random"],
  [/\bperformance\s*\.\s*now\b|\bprocess\s*\.\s*hrtime\b/g, "performance.now"],
];

const waivers: readonly (readonly [RegExp, RegExp])[] = [
  [/@ts-(?:ignore|nocheck)\b.*/g, /^$/],
  [/@ts-expect-error\b.*/g, /^@ts-expect-error:? \S.{4,}/],
  [/\bbiome-ignore\b.*|\bbiome-ignore-.*/g, /^biome-ignore(?:-all|-start|-end)? [\w/]+: (?!<)\S.{4,}/],
  [
    /\b(?:oxlint|eslint)-disable.*/g,
    /^(?:oxlint|eslint)-disable(?:-next-line|-line)? [\w@/, -]*[\w/] -- \S.{4,}/,
  ],
  [/\bcast:.*/g, /^cast: \S.{2,}/],
];

/** The rules that need only one file: its header, unfinished work, waivers, `any`, ambient state. */
export function checkText(file: TreeFile): readonly Finding[] {
  const findings: Finding[] = [];
  const add = (line: number, rule: string, message: string): void => {
    findings.push({ path: file.path, line, rule, message });
  };

  if (!header.test(file.text)) add(1, "header", "lacks the two-line SPDX header");
  for (const match of file.text.matchAll(unfinished)) {
    add(lineAt(file.text, match.index), "unfinished", `${match[0]} belongs in an issue, not in the tree`);
  }
  if (file.source === undefined) return findings;

  for (const match of file.source.code.matchAll(/\bas\s+any\b/g)) {
    add(lineAt(file.text, match.index), "any", "`as any` switches the compiler off");
  }
  for (const comment of file.source.comments) {
    for (const [form, accepted] of waivers) {
      for (const match of comment.text.matchAll(form)) {
        const reasoned = accepted.test(match[0].replace(/\*\/$/, "").trim());
        if (!reasoned) add(comment.line, "waiver", "a waiver names its rule and its reason on the same line");
      }
    }
  }
  if (!mayUseAmbient(file)) {
    for (const [form, name] of ambient) {
      for (const match of file.source.code.matchAll(form)) {
        add(
          lineAt(file.text, match.index),
          "ambient",
          `${name} is for adapters and the composition root; take a port`,
        );
      }
    }
  }
  return findings;
}

function mayUseAmbient(file: TreeFile): boolean {
  const inSource = file.path.startsWith(`packages/${file.owner}/src/`);
  return file.isTest || !inSource || layers[file.owner]?.ambient === "allowed";
}
