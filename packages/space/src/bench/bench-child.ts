// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export interface ServedChild {
  /** Told to the benchmark when everything runs. */
  readonly ready: unknown;
  readonly answer?: (request: unknown) => Promise<unknown>;
  readonly stop?: () => Promise<void>;
}

/**
 * The other end of `BenchProcess`: starts with the configuration that comes first, answers requests one after the other,
 * and ends this process when the benchmark's end of the channel closes.
 */
export function serveBenchmark(start: (config: unknown) => Promise<ServedChild>): void {
  let served: Promise<ServedChild> | undefined;
  process.on("message", (message: unknown) => {
    const request =
      typeof message === "object" && message !== null && "request" in message ? message.request : undefined;
    const first = served === undefined;
    served ??= start(request);
    const answered = first
      ? served.then(({ ready }) => ready)
      : served.then(({ answer }) => answer?.(request) ?? Promise.reject(new TypeError("answers nothing")));
    answered.then(
      (answer) => process.send?.({ answer }),
      (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
    );
  });
  process.on("disconnect", () => {
    const stopped = served?.then(({ stop }) => stop?.()) ?? Promise.resolve();
    stopped.then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}
