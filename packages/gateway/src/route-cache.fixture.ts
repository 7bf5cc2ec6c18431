// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  type ExecutionIdentity,
  freezeIdentity,
  parseActivationId,
  parseGeneration,
  parseSandboxId,
  parseWorkerId,
  type ResolveAnswer,
  type RouteEntry,
  SpaceError,
} from "@space/model";
import type { CachedEntry } from "./cached-entry.ts";
import { newCounts } from "./counters.ts";
import { HandClock } from "./hand-clock.test.ts";
import { gatewayLimits } from "./limits.ts";
import { type LookupOutcome, RouteCache, type RouteQuestion } from "./route-cache.ts";

export const sandboxId = parseSandboxId("iabcdefghij0123456789");
export const workerId = parseWorkerId(`wrk_${"a".repeat(16)}`);

export function identity(generation: number): ExecutionIdentity {
  return freezeIdentity({
    sandboxId,
    generation: parseGeneration(String(generation)),
    placement: { workerId, substrate: "namespace" },
    activation: { id: parseActivationId(`act_${"a".repeat(26)}`), attempt: 1 },
  });
}

export function question(key = "key"): RouteQuestion {
  return {
    key,
    cacheText: "",
    sandboxId,
    credential: { kind: "none" },
    wanted: { purpose: "control", scope: "files:read" },
  };
}

/** A cache whose look-ups the test answers by hand, in any order. */
export class Bench {
  readonly clock = new HandClock();
  readonly counts = newCounts();
  readonly asked: {
    readonly presenter: string;
    readonly wakes: boolean;
    answer(value: ResolveAnswer): void;
    fail(): void;
  }[] = [];
  readonly audited: string[] = [];
  readonly revoked = new Set<string>();
  readonly keys = { version: 1, replace: () => true, holds: (kid: string) => !this.revoked.has(kid) };
  readonly cache: RouteCache;

  constructor(limits: { readonly cacheEntries?: number; readonly lookups?: number } = {}) {
    this.cache = new RouteCache(
      { presenter: "mine", limits: gatewayLimits(limits) },
      {
        clock: this.clock,
        counts: this.counts,
        keys: this.keys,
        audit: { record: (name) => void this.audited.push(name) },
        routes: {
          resolve: ({ presenter, wakes = false }) =>
            new Promise((resolve, reject) => {
              const fail = (): void => reject(new SpaceError("store/failed", { step: "read" }));
              this.asked.push({ presenter, wakes, answer: resolve, fail });
            }),
        },
      },
    );
  }

  entry(generation: number, more: Partial<RouteEntry> = {}): ResolveAnswer {
    const nowMs = this.clock.wallMs();
    return {
      kind: "entry",
      entry: {
        route: { identity: identity(generation), endpoint: { workerId, host: "h", port: 1 } },
        capability: `capability ${this.asked.length}`,
        capabilityIssuedAtMs: nowMs,
        capabilityExpiresAtMs: nowMs + 120_000,
        access: { purpose: "control", scopes: ["files:read"] },
        authorisedForMs: 60_000,
        ...more,
      },
    };
  }

  usable(key?: string): CachedEntry | undefined {
    return this.cache.usable(question(key), this.clock.nowMs);
  }

  /** Looks up with one answer. */
  async fill(generation: number, more: Partial<RouteEntry> = {}, key?: string): Promise<CachedEntry> {
    const pending = this.cache.lookUp(question(key));
    this.asked.at(-1)?.answer(this.entry(generation, more));
    return entryOf(await pending);
  }
}

export function entryOf(outcome: LookupOutcome): CachedEntry {
  return outcome.kind === "entry" ? outcome.cached : assert.fail(outcome.kind);
}
export const generationOf = (outcome: LookupOutcome): bigint =>
  entryOf(outcome).entry.route.identity.generation;
