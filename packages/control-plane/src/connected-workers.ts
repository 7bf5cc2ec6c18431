// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, WorkerDirectory, WorkerEndpoint, WorkerHandle, WorkerId } from "@space/model";

interface KnownWorker {
  readonly endpoint: WorkerEndpoint;
  readonly handle: WorkerHandle | undefined;
  readonly sinceMs: number;
}

/** The workers that have said hello, and where those that are away now were last. */
export class ConnectedWorkers implements WorkerDirectory {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #known = new Map<WorkerId, KnownWorker>();
  /** Those that are here: asked for far more often than it changes. */
  #here: readonly WorkerHandle[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  find(workerId: WorkerId): WorkerHandle | undefined {
    return this.#known.get(workerId)?.handle;
  }

  all(): readonly WorkerHandle[] {
    return this.#here;
  }

  /** Where its node-api is, or was when it was last here: an address only locates. */
  endpointOf(workerId: WorkerId): WorkerEndpoint | undefined {
    return this.#known.get(workerId)?.endpoint;
  }

  /** How long it has been away; 0 while it is here. One never seen is away since this process started. */
  awayMs(workerId: WorkerId): number {
    const known = this.#known.get(workerId);
    if (known?.handle !== undefined) return 0;
    return this.#clock.monotonicMs() - (known?.sinceMs ?? this.#startedMs);
  }

  /** The newest link of a worker is the one that counts. */
  add(handle: WorkerHandle): void {
    const { workerId, endpoint } = handle;
    this.#set(workerId, handle, { workerId, host: endpoint.host, port: endpoint.port });
  }

  /** Only this link: a newer one of the same worker stays (incident 1). Whether it was there. */
  removeIfStillAt(handle: WorkerHandle): boolean {
    const known = this.#known.get(handle.workerId);
    if (known?.handle !== handle) return false;
    this.#set(handle.workerId, undefined, known.endpoint);
    return true;
  }

  #set(workerId: WorkerId, handle: WorkerHandle | undefined, endpoint: WorkerEndpoint): void {
    this.#known.set(workerId, { handle, endpoint, sinceMs: this.#clock.monotonicMs() });
    this.#here = [...this.#known.values()].flatMap(({ handle: here }) => here ?? []);
  }
}
