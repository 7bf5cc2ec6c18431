// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Runs the action for each item, a bounded number at once. Rejects with the first failure, after all that began have ended. */
export async function eachLimited<T>(
  items: readonly T[],
  atOnce: number,
  action: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await action(item);
  };
  const lanes = Array.from({ length: Math.min(atOnce, items.length) }, lane);
  const failed = (await Promise.allSettled(lanes)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}
