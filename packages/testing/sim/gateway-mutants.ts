// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Mutant } from "./mutant.ts";

const cache = "gateway/src/route-cache.ts";
const operation = "gateway/src/operation.ts";
const entry = "gateway/src/cached-entry.ts";

/** Left out: nothing takes its place. */
const nothing = "";

/** What can be wrong with entries, repairs and repetitions. */
export const gatewayMutants: readonly Mutant[] = [
  {
    name: "caller-not-in-key",
    fault: "R-23: entries are kept by sandbox and access alone",
    edits: [
      {
        file: "gateway/src/sandbox-request.ts",
        find: "\\n$" + "{cacheText}",
        replace: "\\n$" + "{cacheText.slice(0, 1)}",
      },
    ],
  },
  {
    name: "use-extends",
    fault: "R-23: using an entry extends it",
    edits: [
      {
        file: cache,
        find: "return nowMs < cached.usableUntilMs && this.isCurrent(cached);",
        replace: "return this.isCurrent(cached);",
      },
      {
        file: cache,
        find: "if (nowMs >= slot.refreshAtMs) this.#refresh(question, slot);",
        replace: "slot.refreshAtMs = nowMs + 45_000;",
      },
    ],
  },
  {
    name: "ended-in-hand",
    fault: "R-25: an entry whose authorisation has ended while its request waited is presented",
    edits: [
      {
        file: operation,
        find: "if (!cache.mayPresent(cached, clock.bootMs())) return this.#renew();",
        replace: "if (!cache.isCurrent(cached)) return this.#renew();",
      },
      {
        file: operation,
        find: "if (!cache.mayPresent(cached, nowMs)) return this.#renew();",
        replace: "if (!cache.isCurrent(cached)) return this.#renew();",
      },
    ],
  },
  {
    name: "repair-extends",
    fault: "R-25: a repaired entry gets a new authorisation",
    edits: [
      {
        file: entry,
        find: "const authorisedUntilMs = Math.min(began.bootMs + grantedMs, notAfterMs);",
        replace: "const authorisedUntilMs = Math.max(began.bootMs + grantedMs, 0 * notAfterMs || 0);",
      },
    ],
  },
  {
    name: "stale-look-up",
    fault: "R-24: a look-up that began before the rejection is taken for its repair",
    edits: [
      {
        file: cache,
        find: 'if (running !== undefined && way === "join") return running.outcome;',
        replace: "if (running !== undefined) return running.outcome;",
      },
    ],
  },
  {
    name: "endless-repair",
    fault: "R-26: repairs again and again",
    edits: [
      {
        file: operation,
        find: "if (this.#repaired || rejected === undefined) return this.#later();",
        replace: "if (rejected === undefined) return this.#later();",
      },
      {
        file: operation,
        find: "if (cached.digest === rejected.digest) return this.#later();",
        replace: nothing,
      },
    ],
  },
  {
    name: "effect-retried",
    fault: "R-28: a write whose answer did not come is sent again",
    edits: [
      {
        file: "wire/src/transport-rules.ts",
        find: 'write: { unanswered: "tell"',
        replace: 'write: { unanswered: "again"',
      },
    ],
  },
];
