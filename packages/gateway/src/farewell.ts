// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { continuationWaitMs } from "@space/wire";
import { Attempt, type AttemptListener } from "./attempt.ts";
import type { CachedEntry } from "./cached-entry.ts";
import type { Continuity } from "./continuity.ts";
import type { OperationCore } from "./operation-core.ts";
import type { LookupOutcome } from "./route-cache.ts";

/**
 * tells the bridge that the caller of a stream which was cut has left, so that nothing is kept for him, and nobody
 * else's output waits for his. It does what his own continuation would have done, with the same check of him and
 * the same admission, and gives that up as soon as it is let in. After {@link continuationWaitMs} the bridge has forgotten
 * the stream by itself.
 */
export class Farewell implements AttemptListener {
  readonly #continuity: Continuity;
  readonly #core: OperationCore;
  readonly #untilMs: number;
  #attempt: Attempt | undefined;
  #cancelPause: () => void = () => undefined;
  #over = false;

  private constructor(continuity: Continuity, core: OperationCore) {
    this.#continuity = continuity;
    this.#core = core;
    this.#untilMs = core.clock.monotonicMs() + continuationWaitMs;
  }

  /** Begins one, if there is anything to tell, and room for one more. */
  static say(continuity: Continuity, core: OperationCore): void {
    if (!continuity.isKnown || core.farewells.size >= core.limits.farewells) return;
    const farewell = new Farewell(continuity, core);
    core.farewells.add(farewell);
    farewell.#later();
  }

  /** The gateway is closing. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelPause();
    this.#attempt?.cancel();
    this.#core.farewells.delete(this);
  }

  admitted(): void {
    this.close();
  }

  failed(code: string): void {
    // Nobody there knows of it: that is all that was wanted.
    if (code === "stream/lost") this.close();
    else this.#later();
  }

  refreshRoute(): void {
    const rejected = this.#attempt?.cached;
    if (rejected === undefined) return this.#later();
    void this.#core.cache.repair(this.#continuity.question, rejected).then(() => this.#later());
  }

  denied(): void {
    this.close();
  }

  unanswered(): void {
    this.#later();
  }

  /** Nothing more comes: it is given up when it is admitted. */
  data(): void {}
  end(): void {}
  cut(): void {}

  #later(): void {
    if (this.#over) return;
    const { clock } = this.#core;
    const nowMs = clock.monotonicMs();
    const pauseMs = this.#continuity.nextTry(nowMs, Number.POSITIVE_INFINITY);
    if (pauseMs === undefined || nowMs >= this.#untilMs) return this.close();
    this.#attempt = undefined;
    this.#cancelPause = clock.after(pauseMs, () => this.#seek());
  }

  #seek(): void {
    const { cache, clock } = this.#core;
    const { question } = this.#continuity;
    const cached = cache.usable(question, clock.bootMs());
    if (cached !== undefined) return this.#present(cached);
    void cache.lookUp(question).then((outcome) => this.#found(outcome));
  }

  #found(outcome: LookupOutcome): void {
    if (this.#over) return;
    if (outcome.kind === "entry") return this.#present(outcome.cached);
    // What ran is gone, or the stream is none of his any more: it has ended by itself.
    if (outcome.kind === "not-found" || outcome.kind === "unauthenticated") return this.close();
    this.#later();
  }

  #present(cached: CachedEntry): void {
    const { links, cache, clock, admissions } = this.#core;
    links.link(cached.entry.route.endpoint).then(
      (link) => {
        if (this.#over) return;
        if (!cache.mayPresent(cached, clock.bootMs())) return this.#later();
        const { request, body } = this.#continuity.takenUp();
        this.#attempt = new Attempt(request, body, this, { link, cached, admission: admissions.next() });
      },
      () => this.#later(),
    );
  }
}
