// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The states of a sandbox. Transitional states are claims with an owner and a deadline. */
export type SandboxState =
  | "creating"
  | "running"
  | "pausing"
  | "paused"
  | "resuming"
  | "killing"
  | "killed"
  | "failed"
  | "lost";

/** From which states each state may be entered. The same table is a constraint in the schema. */
export const enteredFrom: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  creating: [],
  running: ["creating", "resuming", "pausing"],
  pausing: ["running"],
  paused: ["pausing", "resuming", "lost"],
  resuming: ["paused", "lost", "pausing"],
  killing: ["creating", "running", "pausing", "paused", "resuming", "failed", "lost"],
  killed: ["killing"],
  failed: ["creating"],
  lost: ["running", "pausing", "resuming"],
};

export function mayEnter(from: SandboxState, to: SandboxState): boolean {
  return enteredFrom[to].includes(from);
}
