// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { generations } from "./model-identities.ts";
import { plantedFaults } from "./planted-faults.ts";
import { productRules, workersCount } from "./protocol-model.ts";
import { search } from "./search.ts";

/** What the search of the model came to. */
export interface ModelReport {
  readonly workers: number;
  readonly gateways: number;
  readonly generations: number;
  readonly states: number;
  readonly steps: number;
  readonly depth: number;
  readonly invariants: readonly string[];
  /** A way to a broken invariant; null: none can be reached. */
  readonly found: { readonly broken: string; readonly way: readonly string[] } | null;
  readonly planted: readonly {
    readonly fault: string;
    readonly found: string | null;
    readonly steps: number;
  }[];
}

const invariants = [
  "statement 1: an operation reaches only the execution that it names",
  "statement 2: no older incarnation serves beside its published successor",
  "R-12: no record goes back, and no tombstone comes back",
  "R-24: no late answer displaces a newer entry",
];

export function modelReport(gateways: number): ModelReport {
  const { states, steps, depth, found } = search(productRules, gateways);
  const planted = Object.entries(plantedFaults).map(([fault, rules]) => {
    const result = search(rules, gateways);
    return { fault, found: result.found?.broken ?? null, steps: result.found?.way.length ?? 0 };
  });
  return {
    workers: workersCount,
    gateways,
    generations,
    states,
    steps,
    depth,
    invariants,
    found: found ?? null,
    planted,
  };
}

/** For people. */
export function tellModel(report: ModelReport): string {
  const { workers, gateways, states, steps, depth, found, planted } = report;
  const lines = [
    `${workers} workers, ${gateways} gateways, ${report.generations} generations: ${states} states, ${steps} steps, ${depth} deep; every state searched`,
    ...(found === null
      ? report.invariants.map((invariant) => `  holds: ${invariant}`)
      : [`  BROKEN: ${found.broken}`, ...found.way.map((step) => `    ${step}`)]),
    "planted faults:",
    ...planted.map(
      (one) =>
        `  ${one.fault.padEnd(44)}${one.found === null ? "NOT FOUND" : `${one.found}, in ${one.steps} steps`}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}
