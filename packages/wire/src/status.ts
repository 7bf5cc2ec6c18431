// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ErrorKind } from "@space/model";

/** The one table from kind of failure to HTTP status. */
export const httpStatus: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  unauthenticated: 401,
  denied: 403,
  "not-found": 404,
  conflict: 409,
  gone: 410,
  "too-large": 413,
  exhausted: 429,
  internal: 500,
  unavailable: 503,
};
