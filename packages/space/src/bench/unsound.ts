// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The run itself cannot be believed: a contender died, an answer was wrong, a proof failed. A missed goal is none of these. */
export class UnsoundRun extends Error {
  override readonly name = "UnsoundRun";
}
