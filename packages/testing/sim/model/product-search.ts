// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { CoreGraph } from "./core-search.ts";
import { gatewayInvariants } from "./gateway-machine.ts";
import { type GatewayTable, numberOf, surroundingsCount, surroundingsOf } from "./gateway-table.ts";
import type { Rules } from "./rules.ts";

/** What the search of the core with two gateways came to. */
export interface ProductResult {
  /** Gateways are alike: of two states that differ in which is which, one is counted. */
  readonly states: number;
  /** The same with the gateways told apart. */
  readonly ordered: number;
  readonly steps: number;
  /** The longest of the shortest ways to a state. */
  readonly depth: number;
  /** How many steps were held against each invariant of the gateways. */
  readonly tested: readonly number[];
  readonly broken: string | undefined;
  readonly bytes: number;
}

/** Three tables of so many words: 6 GiB. */
const wordsLimit = 2 ** 29;

/**
 * Visits every state of the core with two gateways, nearest first. A gateway only reads the core, and sees nothing of the
 * other: so a state is a number of the core's and an unordered pair of gateways' numbers, and there is exactly one bit for
 * each. A step of the core carries all pairs along at once.
 */
export function searchProduct(graph: CoreGraph, table: GatewayTable, rules: Rules): ProductResult {
  return new ProductSearch(graph, table, rules).run();
}

class ProductSearch {
  readonly #graph: CoreGraph;
  readonly #table: GatewayTable;
  readonly #around: Uint8Array;
  /** Words of one core state's row. */
  readonly #words: number;
  readonly #first: Uint16Array;
  readonly #second: Uint16Array;
  readonly #visited: Uint32Array;
  #fresh: Uint32Array;
  #later: Uint32Array;
  /** Which rows of the next level have anything. */
  #isLater: Uint8Array;
  #isFresh: Uint8Array;
  #steps = 0;
  /** How often a gateway's step was looked at: by number of surroundings, then by the gateway's state. */
  readonly #looks: Float64Array;
  #broken: string | undefined;

  constructor(graph: CoreGraph, table: GatewayTable, rules: Rules) {
    const gateways = table.states.length;
    const pairs = (gateways * (gateways + 1)) / 2;
    const cores = graph.states.length;
    this.#graph = graph;
    this.#table = table;
    this.#around = Uint8Array.from(graph.states, (state) => numberOf(surroundingsOf(state, rules)));
    this.#words = Math.ceil(pairs / 32);
    this.#first = new Uint16Array(pairs);
    this.#second = new Uint16Array(pairs);
    for (let second = 0; second < gateways; second += 1)
      for (let first = 0; first <= second; first += 1) {
        this.#first[pairOf(first, second)] = first;
        this.#second[pairOf(first, second)] = second;
      }
    this.#looks = new Float64Array(surroundingsCount * gateways);
    const size = cores * this.#words;
    if (size > wordsLimit) throw new TypeError("the model has more states than can be searched");
    this.#visited = new Uint32Array(size);
    this.#fresh = new Uint32Array(size);
    this.#later = new Uint32Array(size);
    this.#isFresh = new Uint8Array(cores);
    this.#isLater = new Uint8Array(cores);
  }

  run(): ProductResult {
    this.#reach(0, 0);
    let depth = -1;
    while (this.#advance()) {
      depth += 1;
      for (let core = 0; core < this.#isFresh.length && this.#broken === undefined; core += 1)
        if (this.#isFresh[core] === 1) this.#expand(core);
      if (this.#broken !== undefined) break;
    }
    const { states, ordered } = this.#count();
    const bytes = this.#visited.byteLength * 3;
    return {
      states,
      ordered,
      steps: this.#steps,
      depth,
      tested: this.#tested(),
      broken: this.#broken,
      bytes,
    };
  }

  /** What was reached last is what is looked at now. Whether there is anything. */
  #advance(): boolean {
    [this.#fresh, this.#later] = [this.#later, this.#fresh];
    [this.#isFresh, this.#isLater] = [this.#isLater, this.#isFresh];
    this.#later.fill(0);
    this.#isLater.fill(0);
    return this.#isFresh.includes(1);
  }

  #expand(core: number): void {
    const base = core * this.#words;
    let pairs = 0;
    for (let word = 0; word < this.#words; word += 1) {
      for (let bits = this.#fresh[base + word] ?? 0; bits !== 0; bits &= bits - 1) {
        pairs += 1;
        this.#gatewaysMove(core, word * 32 + (31 - Math.clz32(bits & -bits)));
      }
    }
    const { offsets, next } = this.#graph;
    const from = offsets[core] ?? 0;
    const to = offsets[core + 1] ?? 0;
    this.#steps += pairs * (to - from);
    for (let at = from; at < to; at += 1) this.#carry(base, next[at] ?? 0);
  }

  /** One gateway or the other moves. */
  #gatewaysMove(core: number, pair: number): void {
    const around = this.#around[core] ?? 0;
    const next = this.#table.next[around] ?? [];
    const first = this.#first[pair] ?? 0;
    const second = this.#second[pair] ?? 0;
    const ofFirst = next[first] ?? [];
    const ofSecond = next[second] ?? [];
    for (const moved of ofFirst) this.#reach(core, pairOf(moved, second));
    for (const moved of ofSecond) this.#reach(core, pairOf(first, moved));
    this.#steps += ofFirst.length + ofSecond.length;
    this.#look(around, first);
    this.#look(around, second);
  }

  #look(around: number, gateway: number): void {
    const at = around * this.#table.states.length + gateway;
    const looks = this.#looks[at] ?? 0;
    this.#looks[at] = looks + 1;
    if (looks > 0) return; // judged when it was first met
    const broken = this.#table.judged[around]?.[gateway]?.find(({ isBroken }) => isBroken);
    this.#broken ??= broken?.invariant;
  }

  #tested(): number[] {
    const { judged, states } = this.#table;
    return gatewayInvariants.map((name) =>
      judged
        .flatMap((all, around) =>
          all.map((steps, gateway) => {
            const looks = this.#looks[around * states.length + gateway] ?? 0;
            return looks * steps.filter(({ invariant }) => invariant === name).length;
          }),
        )
        .reduce((sum, count) => sum + count, 0),
    );
  }

  #reach(core: number, pair: number): void {
    const word = core * this.#words + (pair >>> 5);
    const bit = 1 << (pair & 31);
    if (((this.#visited[word] ?? 0) & bit) !== 0) return;
    this.#visited[word] = (this.#visited[word] ?? 0) | bit;
    this.#later[word] = (this.#later[word] ?? 0) | bit;
    this.#isLater[core] = 1;
  }

  /** The core moves, and the gateways stay what they are. */
  #carry(from: number, core: number): void {
    const to = core * this.#words;
    let isNew = 0;
    for (let word = 0; word < this.#words; word += 1) {
      const bits = (this.#fresh[from + word] ?? 0) & ~(this.#visited[to + word] ?? 0);
      if (bits === 0) continue;
      isNew |= bits;
      this.#visited[to + word] = (this.#visited[to + word] ?? 0) | bits;
      this.#later[to + word] = (this.#later[to + word] ?? 0) | bits;
    }
    if (isNew !== 0) this.#isLater[core] = 1;
  }

  #count(): { readonly states: number; readonly ordered: number } {
    let states = 0;
    let ordered = 0;
    for (const [at, word] of this.#visited.entries())
      for (let bits = word; bits !== 0; bits &= bits - 1) {
        const pair = (at % this.#words) * 32 + (31 - Math.clz32(bits & -bits));
        states += 1;
        ordered += this.#first[pair] === this.#second[pair] ? 1 : 2;
      }
    return { states, ordered };
  }
}

function pairOf(one: number, other: number): number {
  return one <= other ? (other * (other + 1)) / 2 + one : (one * (one + 1)) / 2 + other;
}
