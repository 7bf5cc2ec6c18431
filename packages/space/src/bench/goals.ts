// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { rounded } from "./statistics.ts";

/** A ratio that the design set out to reach, and what it would be proud of. */
export interface Goal {
  /** The design's number of it. Goals with several conditions have a row for each. */
  readonly id: string;
  readonly what: string;
  readonly is: "at least" | "at most";
  readonly goal: number;
  readonly stretch: number;
}

export interface JudgedGoal extends Goal {
  readonly measured: number | null;
  readonly verdict: "stretch" | "met" | "missed" | "not measured";
}

/** Reaching a limit exactly is reaching it. Judged on the full value; what is shown has three digits. */
export function judge(goal: Goal, measured: number | undefined): JudgedGoal {
  if (measured === undefined || !Number.isFinite(measured))
    return { ...goal, measured: null, verdict: "not measured" };
  const reaches = (limit: number): boolean =>
    goal.is === "at least" ? measured >= limit : measured <= limit;
  const verdict = reaches(goal.stretch) ? "stretch" : reaches(goal.goal) ? "met" : "missed";
  return { ...goal, measured: rounded(measured), verdict };
}

export function atLeast(id: string, what: string, goal: number, stretch: number): Goal {
  return { id, what, is: "at least", goal, stretch };
}

export function atMost(id: string, what: string, goal: number, stretch: number): Goal {
  return { id, what, is: "at most", goal, stretch };
}
