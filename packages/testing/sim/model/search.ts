// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  firstState,
  normalised,
  type ProtocolRules,
  type ProtocolState,
  stepsFrom,
} from "./protocol-model.ts";

export interface SearchResult {
  readonly states: number;
  readonly steps: number;
  /** The longest of the shortest ways to a state. */
  readonly depth: number;
  /** The first broken invariant, with the shortest way to it. */
  readonly found: { readonly broken: string; readonly way: readonly string[] } | undefined;
}

interface Reached {
  readonly state: ProtocolState;
  readonly depth: number;
  readonly from: string | undefined;
  readonly by: string;
}

/** More than this does not fit into memory. */
const statesLimit = 5_000_000;

/** Visits every state that can be reached, nearest first, and stops at the first step that breaks an invariant. */
export function search(rules: ProtocolRules, gateways: number): SearchResult {
  const begin = firstState(gateways);
  const first = JSON.stringify(begin);
  const reached = new Map<string, Reached>([[first, { state: begin, depth: 0, from: undefined, by: "" }]]);
  let steps = 0;
  let depth = 0;
  for (const [key, at] of reached) {
    depth = at.depth;
    for (const step of stepsFrom(at.state, rules)) {
      steps += 1;
      if (step.broken !== undefined) {
        const way = [...wayTo(reached, key), step.name];
        return { states: reached.size, steps, depth, found: { broken: step.broken, way } };
      }
      const state = normalised(step.next);
      const next = JSON.stringify(state);
      if (reached.has(next)) continue;
      if (reached.size >= statesLimit) throw new TypeError("the model has more states than can be searched");
      reached.set(next, { state, depth: at.depth + 1, from: key, by: step.name });
    }
  }
  return { states: reached.size, steps, depth, found: undefined };
}

function wayTo(reached: ReadonlyMap<string, Reached>, end: string): string[] {
  const way: string[] = [];
  for (let key: string | undefined = end; key !== undefined; ) {
    const at: Reached | undefined = reached.get(key);
    if (at === undefined || at.from === undefined) break;
    way.unshift(at.by);
    key = at.from;
  }
  return way;
}
