// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ErrorCode, type ErrorDetails, type ErrorKind, isSpaceError, SpaceError } from "@space/model";
import { httpStatus } from "@space/wire";

import { type Answer, errorAnswer } from "./answer.ts";

/** E2B's SDK waits that long and tries again, on 429 and with whole seconds only. */
const defaultRetrySeconds = 1;

type Messages = { readonly [C in ErrorCode]?: (details: ErrorDetails[C]) => string };

/** The copy in the store is wrong, the snapshot is not lost: the codes are told apart where its operator looks. */
const unreadable = (): string =>
  "a part of the sandbox's snapshot is missing or damaged in the store; the sandbox stays paused until it is put right";
const locked = (): string =>
  "the key of the sandbox's snapshots cannot be opened; the sandbox is as it was until its operator has put the key back";

/** What is worth telling beyond the kind. Everything else says its kind alone. */
const messages: Messages = {
  "input/invalid": ({ field, problem }) => `${field} ${problem}`,
  "input/too-large": ({ what, limitBytes }) => `${what} is larger than ${limitBytes} bytes`,
  "key/missing": () => "the API key is missing: send it in the X-API-KEY header",
  "key/unknown": () => "the API key is not valid",
  "sandbox/not-found": ({ sandboxId }) => `sandbox '${sandboxId.slice(0, 64)}' not found`,
  "sandbox/not-running": ({ sandboxId }) => `sandbox '${sandboxId}' is not running`,
  "sandbox/state": ({ sandboxId, state }) => `sandbox '${sandboxId}' is ${state}`,
  "sandbox/lost": ({ sandboxId, reason, snapshot }) =>
    `sandbox '${sandboxId}' is lost (${reason}). ${
      snapshot === null
        ? "It has no snapshot"
        : `What it wrote since its newest snapshot is gone; to go on from there, connect with "snapshot": "${snapshot}"`
    }`,
  "template/not-found": ({ template }) => `template '${template}' not found`,
  "limit/sandboxes": ({ limit }) => `the limit of ${limit} sandboxes is reached`,
  "store/full": ({ what }) =>
    `the disk for ${what} is full and the sandbox is as it was; free space there, or kill paused sandboxes, and try again`,
  "snapshot/missing": unreadable,
  "snapshot/version": () =>
    "the sandbox was paused by another version of SPACE, which alone can resume it; use that one, or kill the sandbox",
  "chunk/damaged": unreadable,
  "chunk/truncated": unreadable,
  "chunk/misplaced": unreadable,
  "chunk/size": unreadable,
  "chunk/version": unreadable,
  "tenant-key/missing": locked,
  "key-wrapping/unknown": locked,
  "key-wrapping/refused": locked,
  "key-wrapping/failed": locked,
  "snapshot/unsavable": ({ holder, problem, remedy }) =>
    `the sandbox runs on, for its memory cannot be saved: ${holder}: ${problem}; ${remedy}`,
  "worker/none-free": () => "no worker is free",
  "substrate/unsupported": ({ feature }) => `${feature} is not supported here`,
};

const kindMessages: Readonly<Record<ErrorKind, string>> = {
  invalid: "the request is not valid",
  unauthenticated: "not authenticated",
  denied: "not allowed",
  "not-found": "not found",
  gone: "gone",
  conflict: "the state of the sandbox does not allow it",
  exhausted: "too many requests",
  "too-large": "too large",
  unavailable: "temporarily unavailable, try again",
  internal: "internal error",
};

/** Kinds whose codes say something to a caller; the others would only describe our insides. */
const tells: ReadonlySet<ErrorKind> = new Set([
  "invalid",
  "unauthenticated",
  "not-found",
  "conflict",
  "gone",
  "exhausted",
]);

/**
 * The answer for a failure. A `SpaceError` shows its kind and, where listed above, its public details; anything else
 * is a bug and shows nothing.
 */
export function refusalOf(failure: unknown): Answer {
  const error = isSpaceError(failure)
    ? failure
    : new SpaceError("internal/bug", { where: "e2b-api" }, { cause: failure });
  const { kind } = error;
  const retry = kind === "exhausted" || kind === "unavailable" ? retryAfter(error) : undefined;
  return errorAnswer(httpStatus[kind], messageOf(error), {
    ...(tells.has(kind) ? { errorCode: error.code } : {}),
    ...(retry === undefined ? {} : { headers: retry }),
  });
}

function messageOf<C extends ErrorCode>(error: SpaceError<C>): string {
  return messages[error.code]?.(error.details) ?? kindMessages[error.kind];
}

function retryAfter(error: SpaceError): Readonly<Record<string, string>> {
  const says = isSpaceError(error, "route/unrepaired") || isSpaceError(error, "worker/unfenced");
  const delayMs = says ? error.details.retryAfterMs : 0;
  return { "Retry-After": String(Math.max(defaultRetrySeconds, Math.ceil(delayMs / 1000))) };
}

/** For what E2B has and SPACE has not yet. */
export function unsupported(what: string): Answer {
  return errorAnswer(501, `not supported yet: ${what}`);
}
