// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ErrorCode, isSpaceError } from "../errors.ts";

/** Longest problem that is recorded. */
const problemLimit = 256;

/** What an audit event says of an error: its code, and its problem where it names one. Never its cause. */
export function refusalFacts(error: unknown): { readonly code: ErrorCode; readonly problem: string } {
  if (!isSpaceError(error)) return { code: "internal/bug", problem: "" };
  const { code, details } = error;
  const problem = "problem" in details && typeof details.problem === "string" ? details.problem : "";
  return { code, problem: problem.slice(0, problemLimit) };
}
