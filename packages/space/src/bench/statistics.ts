// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The middle value; of an even number of values the mean of the two middle ones. Throws for none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The value below which `percent` of the values lie, between two neighbours by proportion. Throws `TypeError` for no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = ((sorted.length - 1) * percent) / 100;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  if (low === undefined || high === undefined) throw new TypeError("there is no percentile of nothing");
  return low + (high - low) * (at - Math.floor(at));
}

/**
 * The median of the ratios of values that were measured in the same round. What slowed the machine down in a round slowed
 * both down, so this says more than the ratio of two medians. A round that lacks either value does not count.
 */
export function medianRatio(
  numerators: readonly (number | undefined)[],
  denominators: readonly (number | undefined)[],
): number | undefined {
  const ratios = numerators.flatMap((numerator, round) => {
    const denominator = denominators[round];
    return numerator === undefined || denominator === undefined || denominator === 0
      ? []
      : [numerator / denominator];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}

/** Three significant digits, as a number: what a measurement is worth. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
