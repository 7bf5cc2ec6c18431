// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isSpaceError } from "@space/model";
import { ApiRefusal } from "./sandbox/api-refusal.ts";

/** A failure in words for the person at the terminal: what, and what to change. */
export function explain(error: unknown): string {
  if (error instanceof UsageError) return error.message;
  if (isSpaceError(error, "data/in-use")) {
    return `the data directory is held by process ${error.details.pid}; stop that one first or give another --data`;
  }
  if (isSpaceError(error, "host/unfit")) return `${error.details.problem}; ${error.details.remedy}`;
  if (isSpaceError(error, "root-key/absent"))
    return "the root key is not in the data directory: put it back, or name it with --root-key FILE";
  if (isSpaceError(error, "signing-key/unknown"))
    return `no signing key, or more than one, begins with ${error.details.kid}; ./space keys list shows them`;
  if (isSpaceError(error, "signing-key/state")) return `that key is ${error.details.state} already`;
  if (isSpaceError(error, "chain/refused"))
    return `the chain does not hold: ${error.details.link}: ${error.details.problem}`;
  if (isSpaceError(error, "snapshot/chain-refused"))
    return `the chain that is sealed in the snapshot does not hold: ${error.details.link}: ${error.details.problem}`;
  if (isSpaceError(error)) return `${error.code} ${JSON.stringify(error.details)}${becauseOf(error.cause)}`;
  if (error instanceof ApiRefusal) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function becauseOf(cause: unknown): string {
  if (cause === undefined) return "";
  return `\n  because of: ${cause instanceof Error ? cause.message : JSON.stringify(cause)}`;
}

/** The command line is not as it should be; the message says what to change. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
