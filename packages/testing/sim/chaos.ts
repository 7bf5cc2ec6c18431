// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChaosTargets, type Strike, type StrikeArea, strikesOn } from "./strikes.ts";
import type { WorldPorts } from "./world-ports.ts";

/** Mean time between two faults, and where they strike. */
export interface ChaosPlan {
  readonly everyMs: number;
  readonly areas: ReadonlySet<StrikeArea>;
}

/** Throws faults at a world, at random times, until it is told to stop: each kind as often as its weight says. */
export class Chaos {
  readonly #plan: ChaosPlan;
  readonly #targets: ChaosTargets;
  readonly #ports: WorldPorts;
  readonly #strikes: readonly Strike[];
  /** What is still to come of the present round. */
  #round: Strike[] = [];
  #stopped = false;

  constructor(plan: ChaosPlan, targets: ChaosTargets, ports: WorldPorts) {
    this.#plan = plan;
    this.#targets = targets;
    this.#ports = ports;
    this.#strikes = strikesOn(targets, ports)
      .filter(({ area }) => plan.areas.has(area))
      .flatMap((strike) => Array.from({ length: strike.weight }, () => strike));
  }

  start(): void {
    const { loop, random } = this.#ports;
    if (this.#stopped || this.#plan.everyMs === Number.POSITIVE_INFINITY) return;
    loop.after(random.between(0, 2 * this.#plan.everyMs), undefined, () => {
      if (!this.#stopped) this.#next()?.strike();
      this.start();
    });
  }

  /** No new fault from now on, and what was to last ends. */
  stop(): void {
    this.#stopped = true;
    for (const control of this.#targets.controls) control.storeFailChance = 0;
    for (const { machine } of this.#targets.workers) machine.trouble = undefined;
    this.#targets.objects.repair();
  }

  #next(): Strike | undefined {
    if (this.#round.length === 0) this.#round = [...this.#strikes];
    const at = this.#ports.random.below(this.#round.length);
    const last = this.#round.pop();
    const chosen = this.#round[at] ?? last;
    if (at < this.#round.length && last !== undefined) this.#round[at] = last;
    return chosen;
  }
}
