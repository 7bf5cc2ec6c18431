// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { FuzzRandom } from "./fuzz-random.ts";
import type { FuzzTarget, Outcome } from "./targets.ts";

/** Longest that one input may take, and memory that all may leave behind; generous, for machines that do other things. */
const inputLimitMs = 2_000;
const memoryLimitBytes = 512 * 1024 * 1024;
const lookEvery = 5_000;
/** Inputs that mutations start from. */
const poolLimit = 2_000;

export interface FuzzOptions {
  readonly seed: number;
  /** Whether to go on, asked before each input. */
  readonly goesOn: (inputs: number) => boolean;
  readonly monotonicMs: () => number;
  readonly heapBytes: () => number;
}

export interface FuzzFailure {
  readonly problem: string;
  readonly input: Buffer;
  /** The shortest that was found to fail alike. */
  readonly minimised: Buffer;
}

export interface FuzzReport {
  readonly seed: number;
  readonly inputs: number;
  /** How often each kind of answer came. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  readonly slowestMs: number;
  /** The first input of each kind of answer and magnitude of length that no seed gave. */
  readonly interesting: readonly Buffer[];
  readonly failure: FuzzFailure | null;
}

/** Runs a target on mutations of its seeds until the first failure or the end. The same seed gives the same inputs. */
export function fuzz(target: FuzzTarget, options: FuzzOptions): FuzzReport {
  const random = new FuzzRandom(options.seed);
  const outcomes = new Map<Outcome, number>();
  const features = new Set<string>();
  const pool = [...target.seeds];
  const interesting: Buffer[] = [];
  const heapBefore = options.heapBytes();
  let [inputs, slowestMs, failure]: [number, number, FuzzFailure | null] = [0, 0, null];
  const seeds = target.seeds.values();
  while (failure === null && options.goesOn(inputs)) {
    const seed = seeds.next();
    const input = seed.done === true ? target.mutate(random.one(pool), random, pool) : seed.value;
    inputs += 1;
    const beganMs = options.monotonicMs();
    const answer = answerOf(target, input);
    const tookMs = options.monotonicMs() - beganMs;
    slowestMs = Math.max(slowestMs, tookMs);
    const problem = answer.problem ?? limitPassed(tookMs, inputs, heapBefore, options);
    if (problem !== undefined) {
      failure = {
        problem,
        input,
        minimised: answer.problem === undefined ? input : minimise(target, input, problem),
      };
    }
    const feature = `${answer.outcome} ${Math.ceil(Math.log2(input.length + 1))}`;
    const isNew = !features.has(feature);
    features.add(feature);
    outcomes.set(answer.outcome, (outcomes.get(answer.outcome) ?? 0) + 1);
    if (seed.done === true && (isNew || answer.outcome.startsWith("verified"))) remember(pool, input, random);
    if (seed.done === true && isNew) interesting.push(input);
  }
  return {
    seed: options.seed,
    inputs,
    outcomes: Object.fromEntries(outcomes),
    slowestMs,
    interesting,
    failure,
  };
}

function remember(pool: Buffer[], input: Buffer, random: FuzzRandom): void {
  if (input.length > 16_384) return;
  if (pool.length < poolLimit) pool.push(input);
  else pool[random.below(poolLimit)] = input;
}

function limitPassed(
  tookMs: number,
  inputs: number,
  heapBefore: number,
  options: FuzzOptions,
): string | undefined {
  if (tookMs > inputLimitMs) return `took ${Math.round(tookMs)} ms`;
  const isLook = inputs % lookEvery === 0;
  return isLook && options.heapBytes() - heapBefore > memoryLimitBytes ? "keeps memory" : undefined;
}

interface Answer {
  readonly outcome: Outcome;
  readonly problem?: string;
}

function answerOf(target: FuzzTarget, input: Buffer): Answer {
  try {
    return { outcome: target.run(input) };
  } catch (error) {
    const problem = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { outcome: "FAILED", problem };
  }
}

/** Takes ever smaller pieces away while the same failure comes; at most a few thousand tries. */
export function minimise(target: FuzzTarget, input: Buffer, problem: string): Buffer {
  let smallest = input;
  let tries = 0;
  for (let piece = Math.max(1, input.length >> 1); ; piece >>= 1) {
    for (let from = 0; from < smallest.length && tries < 5_000; ) {
      const shorter = Buffer.concat([smallest.subarray(0, from), smallest.subarray(from + piece)]);
      tries += 1;
      if (answerOf(target, shorter).problem === problem) smallest = shorter;
      else from += piece;
    }
    if (piece <= 1) return smallest;
  }
}
