// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * Runs actions one after the other for each key, and side by side for different keys. A bounded number may wait for one
 * key; what comes on top throws what `refusal` makes, and nothing of it runs.
 */
export class KeyedQueue<Key> {
  readonly #waitingLimit: number;
  readonly #refusal: (key: Key) => Error;
  readonly #queues = new Map<Key, { tail: Promise<void>; length: number }>();

  constructor(waitingLimit: number, refusal: (key: Key) => Error) {
    this.#waitingLimit = waitingLimit;
    this.#refusal = refusal;
  }

  async run<T>(key: Key, action: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key) ?? { tail: Promise.resolve(), length: 0 };
    if (queue.length > this.#waitingLimit) throw this.#refusal(key);
    this.#queues.set(key, queue);
    queue.length += 1;
    const result = queue.tail.then(action);
    queue.tail = result.then(ignore, ignore);
    try {
      return await result;
    } finally {
      queue.length -= 1;
      if (queue.length === 0) this.#queues.delete(key);
    }
  }

  /** Resolves when nothing runs or waits any more. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) await Promise.all([...this.#queues.values()].map(({ tail }) => tail));
  }
}

function ignore(): void {
  // The one who asked for the action gets its failure; the next in the queue is not concerned.
}
