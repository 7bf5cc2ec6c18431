// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JudgedGoal } from "./goals.ts";
import type { MachineFacts } from "./machine.ts";

/** What every report begins with. */
export interface RunFacts {
  readonly machine: MachineFacts;
  readonly gate: { readonly passed: number; readonly loud: number };
}

/** On what the run was, and how quiet it was there. */
export function runText({ machine, gate }: RunFacts): string {
  const text = Object.entries(machine).map(([name, value]) => `${name} ${String(value)}`);
  return `${text.join(", ")}; ${gate.loud} of ${gate.passed} samples were taken while the machine was busy\n`;
}

export function goalTable(goals: readonly JudgedGoal[]): string {
  const rows = goals.map(({ id, what, is, goal, stretch, measured, verdict }) => {
    const sign = is === "at least" ? "≥" : "≤";
    return [
      id,
      what,
      `${sign} ${goal}`,
      String(stretch),
      measured === null ? "–" : String(measured),
      verdict,
    ];
  });
  return table(["goal", "ratio", "goal", "stretch", "measured", ""], rows);
}

/** Columns as wide as their widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return `${[line(head), ...rows.map(line)].join("\n")}\n`;
}
