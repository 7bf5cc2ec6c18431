// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isSpaceError } from "@space/model";
import { GuestConnectionError, GuestError } from "@space/spaced-guest";

/** Connect's status codes, in the spelling of its JSON. */
export type ConnectCode =
  | "canceled"
  | "unknown"
  | "invalid_argument"
  | "deadline_exceeded"
  | "not_found"
  | "already_exists"
  | "aborted"
  | "permission_denied"
  | "resource_exhausted"
  | "failed_precondition"
  | "unimplemented"
  | "internal"
  | "unavailable"
  | "unauthenticated";

const httpStatuses: Readonly<Record<ConnectCode, number>> = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  aborted: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
};

/**
 * A failure in the foreign protocol's terms: its code and a message for the sandbox's user. Both leave the process, so
 * a message holds only what the caller sent or what the guest may tell him.
 */
export class EnvdError extends Error {
  override readonly name: string = "EnvdError";
  readonly code: ConnectCode;
  /** The status where the answer is plain HTTP, or a unary call. */
  readonly status: number;

  constructor(code: ConnectCode, message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = options.status ?? httpStatuses[code];
  }
}

/** Errors of the guest's kernel that mean something to a caller; every other one is `internal`. */
const byErrno: ReadonlyMap<string, readonly [ConnectCode, string, number?]> = new Map([
  ["ENOENT", ["not_found", "does not exist"]],
  ["EEXIST", ["already_exists", "already exists"]],
  ["ENOTEMPTY", ["failed_precondition", "is a directory that is not empty"]],
  ["ENOTDIR", ["invalid_argument", "is not a directory"]],
  ["EISDIR", ["invalid_argument", "is a directory"]],
  ["EINVAL", ["invalid_argument", "is not valid here"]],
  ["ENAMETOOLONG", ["invalid_argument", "is too long"]],
  ["E2BIG", ["invalid_argument", "has arguments that are too long"]],
  ["ENXIO", ["invalid_argument", "is not a file that can be opened"]],
  ["ELOOP", ["failed_precondition", "leads through too many symbolic links"]],
  ["EXDEV", ["failed_precondition", "is on another file system"]],
  ["EBUSY", ["failed_precondition", "is in use"]],
  ["ETXTBSY", ["failed_precondition", "is being executed"]],
  ["EROFS", ["permission_denied", "is on a read-only file system"]],
  ["EACCES", ["permission_denied", "cannot be accessed: permission denied"]],
  ["EPERM", ["permission_denied", "cannot be changed: operation not permitted"]],
  ["ENOSPC", ["resource_exhausted", "cannot be written: not enough disk space available", 507]],
  ["EDQUOT", ["resource_exhausted", "cannot be written: not enough disk space available", 507]],
  ["EOVERFLOW", ["resource_exhausted", "has too many entries to list"]],
  ["EFBIG", ["resource_exhausted", "is too large", 507]],
  ["EAGAIN", ["resource_exhausted", "cannot be served: the sandbox has too many processes"]],
  ["ENOMEM", ["resource_exhausted", "cannot be served: the sandbox is out of memory"]],
  ["EMFILE", ["resource_exhausted", "cannot be served: too many files are open"]],
  ["ENFILE", ["resource_exhausted", "cannot be served: too many files are open"]],
  ["ENOSYS", ["unimplemented", "is not supported by this sandbox"]],
  ["EOPNOTSUPP", ["unimplemented", "is not supported by this sandbox"]],
]);

/** The guest's refusal of an operation on `path`, in the foreign protocol's terms. */
export function fileError(cause: GuestError, path: string): EnvdError {
  const [code, text, status] = byErrno.get(cause.code) ?? ["internal", `cannot be served (${cause.code})`];
  return new EnvdError(code, `path '${path}' ${text}`, status === undefined ? { cause } : { cause, status });
}

/** Runs an operation on `path`, with the guest's refusal translated. */
export async function onPath<T>(path: string, operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    throw error instanceof GuestError ? fileError(error, path) : error;
  }
}

/** What an error that nobody expected becomes. `lost`: the guest is not there any more, or no longer the one it was. */
export function translate(error: unknown): EnvdError | "lost" {
  if (error instanceof EnvdError) return error;
  if (error instanceof GuestError) {
    return new EnvdError("internal", `${error.step}: ${error.code}`, { cause: error });
  }
  if (error instanceof GuestConnectionError) {
    if (error.fault !== "exhausted") return "lost";
    return new EnvdError("resource_exhausted", "too many operations wait in this sandbox", { cause: error });
  }
  if (isSpaceError(error, "endpoint/mismatch") || isSpaceError(error, "endpoint/unverifiable")) return "lost";
  return new EnvdError("internal", "internal error", { cause: error });
}
