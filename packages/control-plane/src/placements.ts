// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError, type WorkerDirectory, type WorkerHandle, type WorkerId } from "@space/model";
import type { SandboxReads } from "./audited-sandboxes.ts";

/** A worker that was chosen, and counted as such until `release`: after the write that the store counts by itself. */
export interface Placement {
  readonly worker: WorkerHandle;
  release(): void;
}

/** Chooses workers. What was chosen but not yet written is counted here, so that a burst is spread as well. */
export class Placements {
  readonly #workers: WorkerDirectory;
  readonly #sandboxes: SandboxReads;
  readonly #reserved = new Map<WorkerId, number>();

  constructor(workers: WorkerDirectory, sandboxes: SandboxReads) {
    this.#workers = workers;
    this.#sandboxes = sandboxes;
  }

  /**
   * The connected worker that is least full for its size, or the one asked for, if it `suits`. Throws `worker/none-free` when there is
   * no room, `worker/unreachable` when the one asked for is not connected.
   */
  async choose(
    asked: WorkerId | undefined,
    suits: (worker: WorkerHandle) => boolean = () => true,
  ): Promise<Placement> {
    const load = await this.#sandboxes.load();
    if (asked !== undefined && this.#workers.find(asked) === undefined) {
      throw new SpaceError("worker/unreachable", { workerId: asked });
    }
    const held = ({ workerId }: WorkerHandle): number =>
      (load.get(workerId) ?? 0) + (this.#reserved.get(workerId) ?? 0);
    let best: WorkerHandle | undefined;
    let least = 1; // full
    for (const worker of this.#workers.all()) {
      const fullness = held(worker) / worker.capacity;
      const isMeant = (asked === undefined || worker.workerId === asked) && suits(worker);
      if (isMeant && fullness < least) [best, least] = [worker, fullness];
    }
    if (best === undefined) throw new SpaceError("worker/none-free", {});
    return this.reserve(best);
  }

  /** Takes this worker, whatever it holds. */
  reserve(worker: WorkerHandle): Placement {
    const { workerId } = worker;
    this.#add(workerId, 1);
    let released = false;
    return {
      worker,
      release: () => {
        if (!released) this.#add(workerId, -1);
        released = true;
      },
    };
  }

  #add(workerId: WorkerId, count: number): void {
    const next = (this.#reserved.get(workerId) ?? 0) + count;
    if (next === 0) this.#reserved.delete(workerId);
    else this.#reserved.set(workerId, next);
  }
}
