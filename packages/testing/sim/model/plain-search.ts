// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Counterexample, coreSteps } from "./core-search.ts";
import { type CoreState, firstCore, packCore } from "./core-state.ts";
import { firstGateway, type Gateway, gatewaySteps } from "./gateway-machine.ts";
import { surroundingsOf } from "./gateway-table.ts";
import type { Rules } from "./rules.ts";

interface Whole {
  readonly core: CoreState;
  readonly gateways: readonly Gateway[];
}

interface Reached {
  readonly whole: Whole;
  readonly from: string | undefined;
  readonly by: string;
}

export interface PlainResult {
  readonly states: number;
  readonly steps: number;
  readonly found: Counterexample | undefined;
}

/**
 * The same search without any of the other's devices, step by step over whole states: slow, for small models, to check the
 * other and to show the way to what it found. Ends at the first step of a gateway that breaks an invariant.
 */
export function plainSearch(rules: Rules, gateways: number): PlainResult {
  const first: Whole = { core: firstCore, gateways: Array.from({ length: gateways }, () => firstGateway) };
  const reached = new Map<string, Reached>([[keyOf(first), { whole: first, from: undefined, by: "" }]]);
  let steps = 0;
  for (const [key, { whole }] of reached) {
    const next = new Set<string>();
    for (const step of stepsFrom(whole, rules)) {
      if (step.broken !== undefined) {
        const way = [...wayTo(reached, key), step.name];
        return { states: reached.size, steps, found: { broken: step.broken, way } };
      }
      const to = keyOf(step.next);
      if (to === key) continue;
      next.add(step.by + to);
      if (!reached.has(to)) reached.set(to, { whole: step.next, from: key, by: step.name });
    }
    steps += next.size;
  }
  return { states: reached.size, steps, found: undefined };
}

interface Step {
  readonly name: string;
  readonly next: Whole;
  /** Who moved, and, of the core, by what. */
  readonly by: string;
  readonly broken?: string | undefined;
}

function stepsFrom({ core, gateways }: Whole, rules: Rules): Step[] {
  const around = surroundingsOf(core, rules);
  return [
    ...coreSteps(core, rules).map(({ name, next }) => ({ name, next: { core: next, gateways }, by: name })),
    ...gateways.flatMap((gateway, at) =>
      gatewaySteps(gateway, around, rules.decisions).map(({ name, next, judged }) => ({
        name: `gateway ${at} ${name}`,
        next: { core, gateways: gateways.with(at, next) },
        by: String(at),
        broken: judged?.isBroken === true ? judged.invariant : undefined,
      })),
    ),
  ];
}

/** Gateways are alike. */
function keyOf({ core, gateways }: Whole): string {
  return [packCore(core), ...gateways.map((gateway) => JSON.stringify(gateway)).toSorted()].join("|");
}

function wayTo(reached: ReadonlyMap<string, Reached>, end: string): string[] {
  const way: string[] = [];
  for (let key: string | undefined = end; key !== undefined; ) {
    const at: Reached | undefined = reached.get(key);
    if (at?.from === undefined) break;
    way.unshift(at.by);
    key = at.from;
  }
  return way;
}
