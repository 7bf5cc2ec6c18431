// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CoreState, executionOf, generationsOf } from "./core-state.ts";
import type { Decisions } from "./decisions.ts";
import {
  firstGateway,
  type Gateway,
  gatewaySteps,
  type Judgement,
  type Surroundings,
} from "./gateway-machine.ts";
import type { Rules } from "./rules.ts";
import { recordAt } from "./worker-steps.ts";

/** As many as there are numbers of surroundings. */
export const surroundingsCount = 32;

/** What a gateway can see of the core. */
export function surroundingsOf(state: CoreState, { decisions }: Rules): Surroundings {
  const { phase, executions } = state;
  const rejected = generationsOf(state).filter((generation) => {
    const { isPublished, at } = executionOf(state, generation);
    return (
      isPublished && decisions.verdict({ generation, worker: at }, recordAt(state, at)) === "refresh-route"
    );
  });
  return {
    running: phase === "running" ? executions.length : 0,
    rejected: rejected.reduce((all, generation) => all | (1 << (generation - 1)), 0),
  };
}

export function numberOf({ running, rejected }: Surroundings): number {
  return running * 8 + rejected;
}

function surroundingsAt(number: number): Surroundings {
  return { running: number >> 3, rejected: number & 7 };
}

/** Every state that one gateway can be in, numbered from its first, 0, and its steps in each surroundings. */
export interface GatewayTable {
  readonly states: readonly Gateway[];
  /** By number of surroundings, then by state: where its steps lead to. */
  readonly next: readonly (readonly (readonly number[])[])[];
  /** Likewise: what its steps were held against. */
  readonly judged: readonly (readonly (readonly Judgement[])[])[];
}

/** Made by trying every step in all surroundings: more than can come about, never less. */
export function gatewayTable(decisions: Decisions): GatewayTable {
  const states: Gateway[] = [];
  const numbers = new Map<string, number>();
  const numbered = (gateway: Gateway): number => {
    const key = JSON.stringify(gateway);
    const number = numbers.get(key) ?? states.push(gateway) - 1;
    numbers.set(key, number);
    return number;
  };
  const next: number[][][] = Array.from({ length: surroundingsCount }, () => []);
  const judged: Judgement[][][] = Array.from({ length: surroundingsCount }, () => []);
  numbered(firstGateway);
  for (let at = 0; at < states.length; at += 1) {
    const gateway = states[at] ?? firstGateway;
    for (let around = 0; around < surroundingsCount; around += 1) {
      const steps = gatewaySteps(gateway, surroundingsAt(around), decisions);
      next[around]?.push([...new Set(steps.map((step) => numbered(step.next)))].filter((to) => to !== at));
      judged[around]?.push(steps.flatMap((step) => step.judged ?? []));
    }
  }
  return { states, next, judged };
}
