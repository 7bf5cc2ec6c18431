// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import type { ControlParts } from "./parts.ts";

/** Throws `input/invalid` for a life that is not a whole number of milliseconds, or longer than the longest. */
export function checkTimeout({ limits }: Pick<ControlParts, "limits">, timeoutMs: number): void {
  if (Number.isSafeInteger(timeoutMs) && timeoutMs >= 0 && timeoutMs <= limits.timeoutMs) return;
  throw new SpaceError("input/invalid", {
    field: "timeout",
    problem: `must be 0 to ${limits.timeoutMs / 1000} seconds`,
  });
}
