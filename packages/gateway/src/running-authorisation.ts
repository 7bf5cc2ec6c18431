// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "@space/model";
import type { CachedEntry } from "./cached-entry.ts";
import type { GatewayLimits } from "./limits.ts";
import type { LookupOutcome, RouteCache, RouteQuestion } from "./route-cache.ts";

/** How long before the end of the authorisation a running operation's caller is checked again. */
const aheadMs = 10_000;

/**
 * `lost`: the control plane says that the caller has no access any more. `gone`: that there is nothing any more to have
 * access to, which is no word about the caller. `unasked`: it could not be asked for too long.
 */
export type AuthorisationEnd = "lost" | "gone" | "unasked";

/** the authorisation of one running operation's caller, checked anew by its own credential before it ends. */
export class RunningAuthorisation {
  readonly #cache: RouteCache;
  readonly #unaskedMs: number;
  readonly #onEnd: (end: AuthorisationEnd) => void;
  #untilMs = 0;
  /** From when on nobody has said that the caller may go on. */
  #unsaidSinceMs = 0;
  #checking = false;

  constructor(
    { cache, limits }: { readonly cache: RouteCache; readonly limits: Pick<GatewayLimits, "unaskedMs"> },
    onEnd: (end: AuthorisationEnd) => void,
  ) {
    this.#cache = cache;
    this.#unaskedMs = limits.unaskedMs;
    this.#onEnd = onEnd;
  }

  /** The operation is presented under this entry. */
  granted({ authorisedUntilMs }: CachedEntry): void {
    this.#untilMs = authorisedUntilMs;
    this.#unsaidSinceMs = authorisedUntilMs;
  }

  /** Called now and then while the operation runs. */
  sweep(question: RouteQuestion, nowMs: number): void {
    if (nowMs >= this.#unsaidSinceMs + this.#unaskedMs) return this.#onEnd("unasked");
    if (this.#checking || nowMs < this.#untilMs - aheadMs) return;
    const cached = this.#cache.usable(question, nowMs);
    if (cached !== undefined && cached.authorisedUntilMs > this.#untilMs) return this.granted(cached);
    if (cached !== undefined && nowMs < this.#untilMs) return;
    this.#checking = true;
    void this.#cache.lookUp(question).then((outcome) => {
      this.#checking = false;
      if (outcome.kind === "entry") this.granted(outcome.cached);
      else this.#refused(outcome, nowMs);
    });
  }

  #refused(outcome: Exclude<LookupOutcome, { readonly kind: "entry" }>, askedMs: number): void {
    const said = saidBy(outcome);
    if (said === "goes-on") this.#unsaidSinceMs = Math.max(this.#unsaidSinceMs, askedMs);
    else if (said !== "nothing") this.#onEnd(said);
  }
}

/**
 * What an answer without an entry says of a caller whose operation runs. A signature bounds when a transfer may begin, not
 * how long it takes; and a sandbox that does not run keeps its callers.
 */
function saidBy(
  outcome: Exclude<LookupOutcome, { readonly kind: "entry" }>,
): "lost" | "gone" | "goes-on" | "nothing" {
  switch (outcome.kind) {
    case "not-found":
      return "gone";
    case "unauthenticated":
      return outcome.problem === "signature-expired" ? "goes-on" : "lost";
    case "not-running":
      return "goes-on";
    case "unavailable":
      return "nothing";
    default:
      return unreachable(outcome);
  }
}
