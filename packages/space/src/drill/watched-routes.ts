// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ResolveAnswer, ResolveRequest, RouteSource } from "@space/model";
import { systemClock } from "../host/system-clock.ts";

/** how long after its check began an entry may be used. */
const entryLifeMs = 60_000;

/** One question of the gateway's, by the monotonic clock. */
export interface AskedQuestion {
  readonly sandboxId: string;
  readonly atMs: number;
}

/** Between a gateway and its control plane: knows what was asked when, and until when each entry lives. */
export class WatchedRoutes implements RouteSource {
  readonly #routes: RouteSource;
  readonly #asked: AskedQuestion[] = [];
  readonly #liveUntilMs = new Map<string, number>();

  constructor(routes: RouteSource) {
    this.#routes = routes;
  }

  /** How many there were so far. */
  get asked(): number {
    return this.#asked.length;
  }

  questions(): readonly AskedQuestion[] {
    return this.#asked;
  }

  /** When the gateway's newest entry for this sandbox and scope ends; before everything when it has none. */
  liveUntilMs(sandboxId: string, scope: string): number {
    return this.#liveUntilMs.get(`${sandboxId} ${scope}`) ?? Number.NEGATIVE_INFINITY;
  }

  async resolve(request: ResolveRequest): Promise<ResolveAnswer> {
    const { sandboxId, wanted } = request;
    const atMs = systemClock.monotonicMs();
    this.#asked.push({ sandboxId, atMs });
    const answer = await this.#routes.resolve(request);
    if (answer.kind === "entry" && wanted.purpose === "control")
      this.#liveUntilMs.set(`${sandboxId} ${wanted.scope}`, atMs + entryLifeMs);
    return answer;
  }
}
