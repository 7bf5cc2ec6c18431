// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ErrorCode, isSpaceError, type SandboxId, SpaceError } from "@space/model";

/**
 * A worker's failure as the caller of an operation sees it: what may pass stays as it is, and so does what is too large
 * in the sandbox for a snapshot; everything else (a refused certificate, a conflict of records, a protocol error) is ours
 * and not the caller's.
 */
export function workerFailure(cause: unknown, step: string): unknown {
  if (!isSpaceError(cause) || cause.kind === "unavailable") return cause;
  // What is in the sandbox's own hands.
  if (step === "snapshot" && (cause.code === "input/too-large" || cause.code === "snapshot/unsavable"))
    return cause;
  return new SpaceError("substrate/failed", { step }, { cause });
}

/** Whether the worker's answer did not come, so that the effect is unknown. */
export function isUnknown(error: unknown): boolean {
  return (
    isSpaceError(error, "worker/unreachable") ||
    isSpaceError(error, "link/closed") ||
    isSpaceError(error, "deadline/passed")
  );
}

/** another replica has taken over what this one was driving, and ends it. */
export function takenOver(limitMs: number): SpaceError<"deadline/passed"> {
  return new SpaceError("deadline/passed", { what: "claim", limitMs });
}

/** The code alone: for reasons that are kept and shown. */
export function codeOf(error: unknown): ErrorCode {
  return isSpaceError(error) ? error.code : "internal/bug";
}

export function notFound(sandboxId: SandboxId): SpaceError<"sandbox/not-found"> {
  return new SpaceError("sandbox/not-found", { sandboxId });
}

/** What somebody else's failure is to one who waited for it: an error of their own. */
export function sharedFailure(error: unknown, step: string): SpaceError {
  return error instanceof SpaceError
    ? new SpaceError(error.code, error.details, { cause: error })
    : new SpaceError("substrate/failed", { step }, { cause: error });
}
