// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What R-24 decides of a cached entry, as pure functions: the cache and the model of the protocol share them. An entry is
// whatever the caller tells apart by `===`.

/** One key's slot as a look-up finds it. */
export interface HeldSlot<Entry> {
  readonly cached: Entry;
  /** Its route was rejected by a worker and a look-up is under way. */
  readonly doubted: boolean;
}

/** How a look-up ended: with an entry that may be presented, with the news that there is none, or with no answer. */
export type LookupEnd = "found" | "nothing" | "unavailable";

/** A look-up that has ended. */
export interface EndedLookup<Entry> {
  /** Whether no other look-up of the key began after it. */
  readonly isNewest: boolean;
  /** What the slot held when it began. */
  readonly expected: Entry | undefined;
  readonly end: LookupEnd;
}

/** what the end of a look-up does to the slot: only if it still holds what it held when that began. */
export function slotAfter<Entry>(
  held: HeldSlot<Entry> | undefined,
  { isNewest, expected, end }: EndedLookup<Entry>,
): "replace" | "remove" | "keep" {
  if (!isNewest) return "keep";
  if (held !== undefined && held.cached !== expected) return "keep";
  if (end === "found") return "replace";
  return end === "nothing" || held?.doubted === true ? "remove" : "keep";
}

/** whether the rejection of one route puts the slot's entry, which has the other, in doubt. */
export function isDoubted<Route>(held: Route, rejected: Route): boolean {
  return held === rejected;
}

/** what a request does whose route was rejected. */
export interface Rejection<Route> {
  readonly rejected: Route;
  /** Whether the slot has an entry that may be presented. It has another route. */
  readonly hasUsable: boolean;
  /** The newest look-up that is under way, and the rejection after which it began. */
  readonly newest: { readonly rejected: Route | undefined } | undefined;
}

/** takes what is here; shares the look-up that began after a rejection of this very route; or asks anew. */
export function repairBy<Route>({ rejected, hasUsable, newest }: Rejection<Route>): "take" | "join" | "ask" {
  if (hasUsable) return "take";
  return newest?.rejected === rejected ? "join" : "ask";
}
