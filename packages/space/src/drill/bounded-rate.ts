// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** A count of events among trials, with what 95 % of such runs would not exceed. */
export interface BoundedRate {
  readonly count: number;
  readonly of: number;
  readonly rate: number;
  /** One-sided upper bound of the rate at 95 %: 0 in n bounds at about 3/n. */
  readonly upper95: number;
}

const confidence = 0.95;
const steps = 100;

/** The exact Poisson bound: the largest mean under which so few events still come in 1 of 20 runs. Throws for no trials. */
export function boundedRate(count: number, of: number): BoundedRate {
  if (of <= 0) throw new TypeError("there is no rate of nothing");
  let low = count;
  let high = count + 10 * Math.sqrt(count + 1) + 10;
  for (let step = 0; step < steps; step += 1) {
    const mean = (low + high) / 2;
    if (chanceOfAtMost(count, mean) > 1 - confidence) low = mean;
    else high = mean;
  }
  return { count, of, rate: count / of, upper95: Number(Math.min(1, high / of).toPrecision(4)) };
}

function chanceOfAtMost(count: number, mean: number): number {
  let term = -mean; // logarithms: large counts have tiny terms
  let sum = Math.exp(term);
  for (let k = 1; k <= count; k += 1) {
    term += Math.log(mean / k);
    sum += Math.exp(term);
  }
  return sum;
}
