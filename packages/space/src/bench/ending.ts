// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

type Step = () => unknown;

/** What a run must end and remove, in the opposite order of its making, also after a failure and on Ctrl-C. */
export class Ending {
  readonly #steps: Step[] = [];
  #running: Promise<void> | undefined;

  add(step: Step): void {
    this.#steps.push(step);
  }

  /** Does every step, whatever the others do. Repeating it waits for the first time. Rejects with the first failure. */
  run(): Promise<void> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Runs `work` with an ending that happens in any case; a signal ends the process once it has. */
export async function withEnding<T>(work: (ending: Ending) => Promise<T>): Promise<T> {
  const ending = new Ending();
  const interrupted = (): void => {
    ending.run().then(
      () => process.exit(130),
      () => process.exit(130),
    );
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupted);
  try {
    return await work(ending);
  } finally {
    await ending.run();
    for (const signal of signals) process.off(signal, interrupted);
  }
}
