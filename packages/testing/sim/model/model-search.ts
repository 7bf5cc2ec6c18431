// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { coreInvariants } from "./core-invariants.ts";
import { type Counterexample, searchCore } from "./core-search.ts";
import { productDecisions } from "./decisions.ts";
import { gatewayInvariants } from "./gateway-machine.ts";
import { gatewayTable } from "./gateway-table.ts";
import { plainSearch } from "./plain-search.ts";
import { type ProductResult, searchProduct } from "./product-search.ts";
import { type Guards, productGuards, type Rules } from "./rules.ts";

export interface ModelSearch {
  readonly core: { readonly states: number; readonly steps: number; readonly depth: number };
  /** States of one gateway, in all surroundings. */
  readonly gateway: number;
  /** With two gateways. Null: the core alone breaks an invariant. */
  readonly whole: Omit<ProductResult, "tested" | "broken"> | null;
  /** In how many states or steps each was put to the test: of the core's, of core states and steps. */
  readonly invariants: readonly { readonly name: string; readonly tested: number }[];
  readonly found: Counterexample | null;
}

/** Searches the product as it is loaded: every state that the core and two gateways can reach. */
export async function searchModel(generations: number): Promise<ModelSearch> {
  const rules: Rules = { decisions: await productDecisions(), guards: productGuards, generations };
  const graph = searchCore(rules);
  const table = gatewayTable(rules.decisions);
  const product = graph.found === undefined ? searchProduct(graph, table, rules) : undefined;
  const { states, ordered, steps, depth, bytes } = product ?? noProduct;
  const named = (names: readonly string[], tested: readonly number[] = []): ModelSearch["invariants"] =>
    names.map((name, at) => ({ name, tested: tested[at] ?? 0 }));
  const coreNames = coreInvariants.map(({ name }) => name);
  return {
    core: { states: graph.states.length, steps: graph.next.length, depth: graph.depths.at(-1) ?? 0 },
    gateway: table.states.length,
    whole: product === undefined ? null : { states, ordered, steps, depth, bytes },
    invariants: [...named(coreNames, graph.tested), ...named(gatewayInvariants, product?.tested)],
    // What one gateway breaks it breaks without the other.
    found: graph.found ?? (product?.broken === undefined ? undefined : plainSearch(rules, 1).found) ?? null,
  };
}

const noProduct = { states: 0, ordered: 0, steps: 0, depth: 0, bytes: 0 };

/** The shortest way to what is broken, by the core or by one gateway, with these steps of the model left out. */
export async function huntFault(
  generations: number,
  leavesOut: readonly (keyof Guards)[],
): Promise<Counterexample | undefined> {
  const left = Object.fromEntries(leavesOut.map((guard) => [guard, false]));
  const rules = { decisions: await productDecisions(), guards: { ...productGuards, ...left }, generations };
  return searchCore(rules).found ?? plainSearch(rules, 1).found;
}
