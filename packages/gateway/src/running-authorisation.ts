// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "@space/model";
import type { CachedEntry } from "./cached-entry.ts";
import type { LookupOutcome, RouteCache, RouteQuestion } from "./route-cache.ts";

/** How long before the end of the authorisation a running operation's caller is checked again. */
const aheadMs = 10_000;

/** the authorisation of one running operation's caller, checked anew by its own credential before it ends. */
export class RunningAuthorisation {
  readonly #cache: RouteCache;
  readonly #onLost: () => void;
  #untilMs = 0;
  #checking = false;

  /** `onLost`: the control plane says that the caller has no access any more. */
  constructor(cache: RouteCache, onLost: () => void) {
    this.#cache = cache;
    this.#onLost = onLost;
  }

  /** The operation is presented under this entry. */
  granted({ authorisedUntilMs }: CachedEntry): void {
    this.#untilMs = authorisedUntilMs;
  }

  /** Called now and then while the operation runs. */
  sweep(question: RouteQuestion, nowMs: number): void {
    if (this.#checking || nowMs < this.#untilMs - aheadMs) return;
    const cached = this.#cache.usable(question, nowMs);
    if (cached !== undefined && cached.authorisedUntilMs > this.#untilMs) return this.granted(cached);
    if (cached !== undefined && nowMs < this.#untilMs) return;
    this.#checking = true;
    void this.#cache.lookUp(question).then((outcome) => {
      this.#checking = false;
      if (outcome.kind === "entry") this.granted(outcome.cached);
      else if (hasLost(outcome)) this.#onLost();
    });
  }
}

/**
 * Whether the check says that the caller has no access any more. A signature bounds when a transfer may begin, not how
 * long it takes; and while nobody can be asked, the worker's own lease bounds the stream.
 */
function hasLost(outcome: Exclude<LookupOutcome, { readonly kind: "entry" }>): boolean {
  switch (outcome.kind) {
    case "not-found":
      return true;
    case "unauthenticated":
      return outcome.problem !== "signature-expired";
    case "not-running":
    case "unavailable":
      return false;
    default:
      return unreachable(outcome);
  }
}
