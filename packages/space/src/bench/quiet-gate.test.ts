// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type GateLimits, type GatePorts, QuietGate } from "./quiet-gate.ts";

const limits: GateLimits = { busyCores: 0.2, windowMs: 250, waitMs: 1_000, totalWaitMs: 2_500 };

/** A machine whose cores are busy as told, one figure for each window; the last one goes on. */
class ToldMachine implements GatePorts {
  readonly #busyCores: readonly number[];
  #window = 0;
  #nowMs = 0;
  #busy = 0;

  constructor(busyCores: readonly number[]) {
    this.#busyCores = busyCores;
  }

  get windows(): number {
    return this.#window;
  }

  readonly busySeconds = (): number => this.#busy;
  readonly monotonicMs = (): number => this.#nowMs;
  readonly pause = (delayMs: number): Promise<void> => {
    const cores = this.#busyCores[Math.min(this.#window, this.#busyCores.length - 1)] ?? 0;
    this.#window += 1;
    this.#nowMs += delayMs;
    this.#busy += (cores * delayMs) / 1000;
    return Promise.resolve();
  };
}

test("a quiet machine lets a sample through after one window", async () => {
  const machine = new ToldMachine([0.1]);
  const gate = new QuietGate(limits, machine);
  assert.equal(await gate.quiet(), true);
  assert.equal(machine.windows, 1);
  assert.deepEqual(gate.counts, { passed: 1, loud: 0 });
});

test("exactly the limit is not quiet", async () => {
  const machine = new ToldMachine([0.2, 0.19]);
  assert.equal(await new QuietGate(limits, machine).quiet(), true);
  assert.equal(machine.windows, 2);
});

test("it waits until the work of others is done", async () => {
  const machine = new ToldMachine([2, 1.5, 0.05]);
  assert.equal(await new QuietGate(limits, machine).quiet(), true);
  assert.equal(machine.windows, 3);
});

test("it waits no longer than the limit, and says that the sample is loud", async () => {
  const machine = new ToldMachine([2]);
  const gate = new QuietGate(limits, machine);
  assert.equal(await gate.quiet(), false);
  assert.equal(machine.windows, 4);
  assert.deepEqual(gate.counts, { passed: 1, loud: 1 });
});

test("all waits together have a limit: after it, each sample waits for one window only", async () => {
  const machine = new ToldMachine([2]);
  const gate = new QuietGate(limits, machine);
  for (let sample = 0; sample < 3; sample += 1) await gate.quiet();
  assert.equal(machine.windows, 4 + 4 + 2);
  await gate.quiet();
  assert.equal(machine.windows, 11);
});
