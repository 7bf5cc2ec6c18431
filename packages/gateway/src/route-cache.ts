// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  AuditSink,
  BootClock,
  CallerCredential,
  Digest,
  ResolveAnswer,
  RouteSource,
  SandboxId,
  WantedAccess,
} from "@space/model";
import { type CachedEntry, cacheEntry, covers, type LookupStart } from "./cached-entry.ts";
import type { MutableCounts } from "./counters.ts";
import type { HeldKeys } from "./held-keys.ts";
import type { GatewayLimits } from "./limits.ts";
import { isDoubted, repairBy, slotAfter } from "./slot-decisions.ts";

/** What is asked: who wants which access to which sandbox. `key` names the three together. */
export interface RouteQuestion {
  readonly key: string;
  /** The credential as text: the caller's part of the key. */
  readonly cacheText: string;
  readonly sandboxId: SandboxId;
  readonly credential: CallerCredential;
  readonly wanted: WantedAccess;
}

export type LookupOutcome =
  | { readonly kind: "entry"; readonly cached: CachedEntry }
  | Exclude<ResolveAnswer, { readonly kind: "entry" }>
  /** The control plane could not be asked: never taken for `not-found` (incident 26). */
  | { readonly kind: "unavailable" };

export interface RouteCacheOptions {
  readonly presenter: string;
  readonly limits: GatewayLimits;
}

export interface RouteCachePorts {
  readonly routes: RouteSource;
  readonly clock: BootClock;
  readonly audit: AuditSink;
  readonly counts: MutableCounts;
  readonly keys: HeldKeys;
}

interface Slot {
  readonly cached: CachedEntry;
  /** Whether it was used since the eviction last came by. */
  used: boolean;
  /** Its route was rejected by a worker and a look-up is under way. */
  doubted: boolean;
  refreshAtMs: number;
}

interface Lookup {
  readonly wakes: boolean;
  readonly outcome: Promise<LookupOutcome>;
  /** The rejected route whose rejection was known when this began. */
  readonly rejected: Digest | undefined;
}

/** After a background look-up failed, the next one waits this long. */
const refreshPauseMs = 1000;
/** How many used entries the eviction passes over before it takes one anyway. */
const secondChances = 16;

/**
 * The gateway's entries. At most one look-up per key is under way, or two while one of them began before a rejection:
 * only the one that began last may change the cache.
 */
export class RouteCache {
  readonly #limits: GatewayLimits;
  readonly #ports: RouteCachePorts;
  #presenter: string;
  readonly #slots = new Map<string, Slot>();
  readonly #lookups = new Map<string, Lookup>();
  #underWay = 0;

  constructor(options: RouteCacheOptions, ports: RouteCachePorts) {
    this.#limits = options.limits;
    this.#presenter = options.presenter;
    this.#ports = ports;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** The entry to present now, if there is one. R-23: its use changes nothing but what the eviction sees. */
  usable(question: RouteQuestion, nowMs: number): CachedEntry | undefined {
    const slot = this.#slots.get(question.key);
    if (slot === undefined || slot.doubted) return undefined;
    if (!this.mayPresent(slot.cached, nowMs)) {
      this.#slots.delete(question.key);
      return undefined;
    }
    slot.used = true;
    if (nowMs >= slot.refreshAtMs) this.#refresh(question, slot);
    return slot.cached;
  }

  /**
   * Asks the control plane, or joins who is asking already. What such an answer refuses may have come to run before this
   * caller asked, and may be all that it waits for: it asks once more. Never rejects.
   */
  lookUp(question: RouteQuestion): Promise<LookupOutcome> {
    const joined = this.#lookups.get(question.key);
    if (joined === undefined) return this.#begin(question, undefined).outcome;
    return joined.outcome.then((outcome) => (mayHaveBegun(outcome) ? this.#sinceThen(question) : outcome));
  }

  /**
   * Wakes the sandbox, if it may be: for a request that would be refused otherwise, never for one that goes on. All who ask
   * meanwhile share one. Never rejects.
   */
  wake(question: RouteQuestion): Promise<LookupOutcome> {
    const joined = this.#lookups.get(question.key);
    return joined?.wakes === true ? joined.outcome : this.#begin(question, undefined, true).outcome;
  }

  /**
   * what to present instead of an entry that a worker rejected. An entry with another route that is here already
   * is taken as it is; otherwise all who were rejected on this route share a look-up that began after the rejection.
   */
  repair(question: RouteQuestion, rejected: CachedEntry): Promise<LookupOutcome> {
    const slot = this.#slots.get(question.key);
    if (slot !== undefined && isDoubted(slot.cached.digest, rejected.digest)) slot.doubted = true;
    const newer = this.usable(question, this.#ports.clock.bootMs());
    const running = this.#lookups.get(question.key);
    const way = repairBy({ rejected: rejected.digest, hasUsable: newer !== undefined, newest: running });
    if (newer !== undefined && way === "take") return Promise.resolve({ kind: "entry", cached: newer });
    if (running !== undefined && way === "join") return running.outcome;
    return this.#begin(question, rejected).outcome;
  }

  /** Incident 1: removes the entry only if it is still this very one. */
  removeIfStill(question: RouteQuestion, cached: CachedEntry): void {
    if (this.#slots.get(question.key)?.cached === cached) this.#slots.delete(question.key);
  }

  /**
   * Whether it may be presented at this moment: its authorisation lasts, and so does its capability. Whoever
   * has had one in hand while it waited for anything asks again.
   */
  mayPresent(cached: CachedEntry, nowMs: number): boolean {
    return nowMs < cached.usableUntilMs && this.isCurrent(cached);
  }

  /** Whether it is of the certificate of now, and signed by a key that still counts. */
  isCurrent({ presenter, kid }: CachedEntry): boolean {
    return presenter === this.#presenter && this.#ports.keys.holds(kid);
  }

  /** a new certificate empties the entries; what is being looked up for the old one is not kept. */
  usePresenter(presenter: string): void {
    this.#presenter = presenter;
    this.dropOutdated();
  }

  /** lets go of every entry that may not be presented any more. */
  dropOutdated(): void {
    for (const [key, { cached }] of this.#slots) if (!this.isCurrent(cached)) this.#slots.delete(key);
    this.#lookups.clear(); // those who wait for one get its answer; nobody joins it, and it is not kept
  }

  /** Lets go of what has ended, so that idle callers' capabilities are not kept. */
  sweep(nowMs: number): void {
    for (const [key, slot] of this.#slots) if (nowMs >= slot.cached.usableUntilMs) this.#slots.delete(key);
  }

  /** Of a look-up that began after this caller asked: there was another before it. */
  #sinceThen(question: RouteQuestion): Promise<LookupOutcome> {
    return (this.#lookups.get(question.key) ?? this.#begin(question, undefined)).outcome;
  }

  #refresh(question: RouteQuestion, slot: Slot): void {
    if (this.#lookups.has(question.key)) return;
    slot.refreshAtMs = this.#ports.clock.bootMs() + refreshPauseMs;
    this.#begin(question, undefined);
  }

  #begin(question: RouteQuestion, rejected: CachedEntry | undefined, wakes = false): Lookup {
    const { clock } = this.#ports;
    const began: LookupStart = {
      presenter: this.#presenter,
      bootMs: clock.bootMs(),
    };
    const expected = this.#slots.get(question.key)?.cached;
    const asked = this.#ask(question, { ...began, wakes }, rejected);
    const lookup: Lookup = {
      wakes,
      rejected: rejected?.digest,
      outcome: asked.then((outcome) => {
        this.#settle(question, lookup, expected, outcome);
        return outcome;
      }),
    };
    this.#lookups.set(question.key, lookup);
    return lookup;
  }

  /** Takes over what the newest look-up found, if the cache still holds what it held when that began. */
  #settle(
    { key, sandboxId }: RouteQuestion,
    lookup: Lookup,
    expected: CachedEntry | undefined,
    outcome: LookupOutcome,
  ): void {
    const { audit } = this.#ports;
    const found = outcome.kind === "entry" ? outcome.cached : undefined;
    const isNewest = this.#lookups.get(key) === lookup;
    if (lookup.rejected !== undefined)
      audit.record("route/repaired", { sandboxId, rejected: lookup.rejected, found: found?.digest ?? null });
    if (isNewest) this.#lookups.delete(key);
    const current = found !== undefined && this.isCurrent(found) ? found : undefined;
    const unfound = outcome.kind === "unavailable" ? "unavailable" : "nothing";
    const end = current === undefined ? unfound : "found";
    const after = slotAfter(this.#slots.get(key), { isNewest, expected, end });
    if (after === "replace" && current !== undefined) this.#hold(key, current);
    else if (after === "remove") this.#slots.delete(key);
  }

  #hold(key: string, cached: CachedEntry): void {
    this.#slots.delete(key);
    this.#slots.set(key, { cached, used: false, doubted: false, refreshAtMs: cached.refreshAtMs });
    if (this.#slots.size > this.#limits.cacheEntries) this.#evict();
  }

  #evict(): void {
    let passed = 0;
    for (const [key, slot] of this.#slots) {
      this.#slots.delete(key);
      if (!slot.used || passed >= secondChances) return;
      slot.used = false;
      passed += 1;
      this.#slots.set(key, slot);
    }
  }

  #ask(
    question: RouteQuestion,
    began: LookupStart & { readonly wakes: boolean },
    rejected: CachedEntry | undefined,
  ): Promise<LookupOutcome> {
    const { clock, counts } = this.#ports;
    const { lookups, lookupWaitMs } = this.#limits;
    if (this.#underWay >= lookups) return Promise.resolve({ kind: "unavailable" });
    this.#underWay += 1;
    counts.resolves += 1;
    return new Promise((resolve) => {
      const settle = (outcome: LookupOutcome): void => {
        cancel();
        resolve(outcome);
      };
      const cancel = clock.after(lookupWaitMs, () => resolve({ kind: "unavailable" }));
      this.#resolve(question, began).then(
        (answer) => settle(read(question, answer, began, rejected)),
        () => settle({ kind: "unavailable" }),
      );
    });
  }

  async #resolve(
    question: RouteQuestion,
    { presenter, wakes }: LookupStart & { readonly wakes: boolean },
  ): Promise<ResolveAnswer> {
    const { sandboxId, credential, wanted } = question;
    try {
      return await this.#ports.routes.resolve({
        sandboxId,
        credential,
        wanted,
        presenter,
        ...(wakes && { wakes }),
      });
    } finally {
      this.#underWay -= 1;
    }
  }
}

/** Whether it says that nothing runs: what is true of the moment at which it was asked. */
function mayHaveBegun({ kind }: LookupOutcome): boolean {
  return kind === "not-running" || kind === "not-found";
}

function read(
  question: RouteQuestion,
  answer: ResolveAnswer,
  began: LookupStart,
  rejected: CachedEntry | undefined,
): LookupOutcome {
  if (answer.kind !== "entry") return answer;
  const { entry } = answer;
  const ours = entry.route.identity.sandboxId === question.sandboxId && covers(entry.access, question.wanted);
  // while the old authorisation lasts, the repaired entry has its end; after that this look-up is its own check.
  const notAfterMs =
    rejected !== undefined && rejected.authorisedUntilMs > began.bootMs
      ? rejected.authorisedUntilMs
      : undefined;
  return ours ? { kind: "entry", cached: cacheEntry(entry, began, notAfterMs) } : { kind: "unavailable" };
}
