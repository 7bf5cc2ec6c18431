// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CoreStep, controlSteps, isAwaited, leaseSteps } from "./control-steps.ts";
import { coreInvariants } from "./core-invariants.ts";
import { type CoreState, type Execution, firstCore, packCore } from "./core-state.ts";
import type { Rules } from "./rules.ts";
import { operationSteps, workerSteps } from "./worker-steps.ts";

/** More than this does not fit into memory. */
const statesLimit = 4_000_000;

/** A way to a broken invariant. */
export interface Counterexample {
  readonly broken: string;
  readonly way: readonly string[];
}

/** Every state of the core, numbered in the order in which they were reached, with the states that come next. */
export interface CoreGraph {
  readonly states: readonly CoreState[];
  readonly depths: readonly number[];
  /** The steps out of state s lead to `next[at]` for `at` from `offsets[s]` until `offsets[s + 1]`. */
  readonly offsets: readonly number[];
  readonly next: readonly number[];
  /** In how many states and steps each invariant was put to the test. */
  readonly tested: readonly number[];
  readonly found: Counterexample | undefined;
}

/** Every step that can happen now without a gateway. Steps that change nothing are none. */
export function coreSteps(state: CoreState, rules: Rules): CoreStep[] {
  const all = [
    ...controlSteps(state, rules),
    ...leaseSteps(state, rules),
    ...workerSteps(state, rules),
    ...operationSteps(state, rules),
  ];
  return all.map(({ name, next }) => ({ name, next: normalised(next, rules) }));
}

/** The one form of states that differ in nothing that can matter any more. */
function normalised(state: CoreState, rules: Rules): CoreState {
  const executions = state.executions.map((execution, index) => reduced(state, execution, index + 1, rules));
  return { ...state, executions };
}

function reduced(state: CoreState, execution: Execution, generation: number, { guards }: Rules): Execution {
  const { command, pause, isCertified, runs, isWritten } = execution;
  const isUnderWay = command === "activate" || command === "install";
  const isHeard =
    isUnderWay || isAwaited(state, generation) || (command === "installed" && !guards.comparesRevision);
  const isPausing = state.phase === "pausing" && generation === state.executions.length;
  const isPauseUnderWay = pause === "asked" || pause === "aborting";
  const mayCommit = isPausing && (pause === "snapshot" || !guards.recordsAborts);
  return {
    ...execution,
    command: isHeard ? command : "over", // nobody waits for the answer any more
    pause: isPausing || isPauseUnderWay ? pause : "none",
    // A process starts once: without one, and with none on its way, the certificate is refused for ever.
    isCertified: isCertified && (runs || !guards.checksProcess),
    isWritten: isWritten && mayCommit, // no commit, nothing that could be missing from it
  };
}

/** Visits every state of the core, nearest first; ends at the first step or state that breaks an invariant. */
export function searchCore(rules: Rules): CoreGraph {
  const search = new CoreSearch(rules);
  return search.run();
}

class CoreSearch {
  readonly #rules: Rules;
  readonly #states: CoreState[] = [];
  readonly #packed: number[] = [];
  readonly #numbers = new Map<number, number>();
  readonly #parents: number[] = [];
  readonly #depths: number[] = [];
  readonly #offsets: number[] = [0];
  readonly #next: number[] = [];
  readonly #tested: number[] = coreInvariants.map(() => 0);

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  run(): CoreGraph {
    this.#number(firstCore, packCore(firstCore), -1);
    for (let at = 0; at < this.#states.length; at += 1) {
      const broken = this.#expand(at);
      if (broken !== undefined) return this.#graph(broken);
    }
    return this.#graph(undefined);
  }

  #expand(at: number): Counterexample | undefined {
    const state = this.#state(at);
    const bad = this.#judge((invariant) => invariant.inState?.(state, this.#rules));
    if (bad !== undefined) return { broken: bad, way: this.#wayTo(at) };
    for (const { name, next } of coreSteps(state, this.#rules)) {
      const packed = packCore(next);
      if (packed === this.#packed[at]) continue;
      const broken = this.#judge((invariant) => invariant.inStep?.(state, next));
      if (broken !== undefined) return { broken, way: [...this.#wayTo(at), name] };
      this.#next.push(this.#number(next, packed, at));
    }
    this.#offsets.push(this.#next.length);
    return undefined;
  }

  #judge(of: (invariant: (typeof coreInvariants)[number]) => string | undefined): string | undefined {
    for (const [index, invariant] of coreInvariants.entries()) {
      const found = of(invariant);
      if (found === "broken") return invariant.name;
      if (found === "holds") this.#tested[index] = (this.#tested[index] ?? 0) + 1;
    }
    return undefined;
  }

  #number(state: CoreState, packed: number, parent: number): number {
    const known = this.#numbers.get(packed);
    if (known !== undefined) return known;
    const number = this.#states.length;
    if (number >= statesLimit) throw new TypeError("the core has more states than can be searched");
    this.#numbers.set(packed, number);
    this.#states.push(state);
    this.#packed.push(packed);
    this.#parents.push(parent);
    this.#depths.push(parent < 0 ? 0 : (this.#depths[parent] ?? 0) + 1);
    return number;
  }

  #state(at: number): CoreState {
    const state = this.#states[at];
    if (state === undefined) throw new TypeError(`there is no state ${at}`);
    return state;
  }

  /** Names are not kept: the steps of a way are made again. */
  #wayTo(end: number): string[] {
    const way: string[] = [];
    for (let at = end; at > 0; at = this.#parents[at] ?? 0)
      way.unshift(this.nameOf(this.#parents[at] ?? 0, at));
    return way;
  }

  nameOf(from: number, to: number): string {
    const step = coreSteps(this.#state(from), this.#rules).find(
      ({ next }) => packCore(next) === this.#packed[to],
    );
    return step?.name ?? "?";
  }

  #graph(found: Counterexample | undefined): CoreGraph {
    return {
      states: this.#states,
      depths: this.#depths,
      offsets: this.#offsets,
      next: this.#next,
      tested: this.#tested,
      found,
    };
  }
}
