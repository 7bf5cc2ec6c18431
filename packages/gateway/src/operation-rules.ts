// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "@space/model";
import { transportRules } from "@space/wire";
import type { OperationRequest } from "./attempt.ts";
import { errorEnding } from "./connect-envelopes.ts";
import type { Refusal } from "./refusal.ts";
import type { LookupOutcome } from "./route-cache.ts";

/** Nothing happened, and after this time it may. */
export const tryAgain: Refusal = { kind: "try-again", afterMs: 1000 };

/**
 * the last message of a stream that could not go on. Undefined: it breaks off, as clients know it of a sandbox that
 * is gone.
 */
export function endingOf({ kind }: Refusal): Buffer | undefined {
  switch (kind) {
    case "try-again":
      return errorEnding("unavailable", "the sandbox was away for too long: the stream cannot go on");
    case "outcome-unknown":
    case "bad-answer":
      return errorEnding("aborted", "what the stream belonged to did not outlive the sandbox's move");
    case "denied":
    case "unauthenticated":
    case "not-running":
    case "port-closed":
    case "body-too-large":
    case "too-many-requests":
    case "bad-request":
    case "headers-too-large":
    case "unknown-operation":
      return undefined;
    default:
      return unreachable(kind);
  }
}

/** whether a request whose answer never came may be presented again. */
export function mayRepeat(request: OperationRequest): boolean {
  return transportRules[request.class].unanswered === "again";
}

/** Whether a caller may simply ask again, whatever became of the request. */
export function changesNothing({ class: kind }: OperationRequest): boolean {
  return kind === "read" || kind === "attach" || kind === "watch";
}

/** Whether it waits for a sandbox that does not run at the moment: what is typed meanwhile arrives in its place. */
export function isInput({ class: kind }: OperationRequest): boolean {
  return kind === "input" || kind === "input-stream";
}

/**
 * what a caller hears whose request was denied. R-10: where another key signs now than the one that was denied, that
 * one has ended before this gateway heard of it, and nothing is held against him: he may try again.
 */
export function afterDenial(kid: string, now: LookupOutcome): Refusal {
  switch (now.kind) {
    case "entry":
      return now.cached.kid === kid ? { kind: "denied" } : tryAgain;
    case "unavailable":
      return tryAgain;
    case "not-found":
    case "not-running":
      return { kind: "not-running" };
    case "unauthenticated":
      return { kind: "unauthenticated", problem: now.problem };
    default:
      return unreachable(now);
  }
}
