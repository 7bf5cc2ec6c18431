// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

interface Running {
  readonly done: Promise<unknown>;
  next: Promise<void> | undefined;
}

/**
 * One sync for all who ask for the same path while another one is under way. Each gets one that has begun after it asked:
 * one that was under way already may have missed what it wants to last.
 */
export class SharedSyncs {
  readonly #syncNow: (path: string) => Promise<void>;
  /** Of paths with a sync under way, and with it the one that follows, once somebody waits for that. */
  readonly #running = new Map<string, Running>();

  constructor(syncNow: (path: string) => Promise<void>) {
    this.#syncNow = syncNow;
  }

  sync(path: string): Promise<void> {
    const running = this.#running.get(path);
    if (running === undefined) return this.#begin(path);
    running.next ??= running.done.then(() => this.#begin(path));
    return running.next;
  }

  #begin(path: string): Promise<void> {
    const sync = this.#syncNow(path);
    // The next one begins at once after this one, whatever came of it, before anybody else can ask.
    const ended = (): void => {
      if (this.#running.get(path) === mine && mine.next === undefined) this.#running.delete(path);
    };
    const mine: Running = { done: sync.then(ended, ended), next: undefined };
    this.#running.set(path, mine);
    return sync;
  }
}
