// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Counterexample } from "./core-search.ts";
import type { ModelSearch } from "./model-search.ts";

/** What became of one planted fault. */
export interface HuntedFault {
  readonly name: string;
  readonly fault: string;
  readonly generations: number;
  /** Null: it was not found, and so the search does not see it. */
  readonly found: Counterexample | null;
}

/** What the search of the model came to. */
export interface ModelReport extends ModelSearch {
  readonly workers: number;
  readonly gateways: number;
  readonly generations: number;
  readonly seconds: number;
  /** The most memory that its process ever had. */
  readonly residentBytes: number;
  readonly planted: readonly HuntedFault[];
}

/** Whether nothing is broken that should hold, and everything was found that is broken. */
export function isSound({ found, planted }: ModelReport): boolean {
  return found === null && planted.every((fault) => fault.found !== null);
}

/** For people. */
export function tellModel(report: ModelReport): string {
  return `${[...tellSearch(report), ...report.planted.flatMap(tellFault), tellCount(report)].join("\n")}\n`;
}

function tellSearch(report: ModelReport): string[] {
  const { workers, gateways, generations, core, gateway, whole, seconds, residentBytes, found } = report;
  const head = `${workers} workers, ${gateways} gateways, ${generations} generations`;
  const lines = [
    `${head}: every reachable state visited, in ${seconds.toFixed(1)} s and ${mebibytes(residentBytes)}`,
    `  core (control plane, workers, what is under way): ${core.states} states, ${core.steps} steps, ${core.depth} deep`,
    `  one gateway: ${gateway} states in all surroundings`,
  ];
  if (whole !== null)
    lines.push(
      `  core and two gateways: ${whole.states} states (${whole.ordered} with the gateways told apart), ${whole.steps} steps, ${whole.depth} deep`,
      `  one bit for each state there can be, in ${mebibytes(whole.bytes)}: no state is taken for another (no hashing)`,
    );
  if (found !== null) return [...lines, ...tellWay(found)];
  const tested = report.invariants.map(
    ({ name, tested: times }) => `  holds: ${name} (put to the test ${times} times)`,
  );
  return [...lines, ...tested];
}

function tellFault({ name, fault, generations, found }: HuntedFault): string[] {
  const head = `planted ${name} (${fault}), ${generations} generations:`;
  return found === null ? [`${head} NOT FOUND`] : [head, ...tellWay(found)];
}

function tellWay({ broken, way }: Counterexample): string[] {
  return [`  BROKEN: ${broken}`, ...way.map((step, at) => `    ${at + 1}. ${step}`)];
}

function tellCount({ planted }: ModelReport): string {
  return `${planted.length} planted faults, ${planted.filter(({ found }) => found === null).length} not found`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}
