// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SimProcess } from "./sim-machine.ts";
import type { TrueSandbox } from "./truth.ts";

/** What of a process, and of its sandbox, decides whether a stream goes on. */
type LivingProcess = Pick<SimProcess, "uid" | "state" | "activation">;
type LivingSandbox = Pick<TrueSandbox, "state" | "current"> & {
  readonly processes: readonly LivingProcess[];
};

/** whether what an operation reached lives on, in the same memory, and nobody has ended it or left it paused. */
export function isEligible(sandbox: LivingSandbox, reached: readonly number[]): boolean {
  const { processes, state } = sandbox;
  if (state === "paused" || state === "killing" || state === "killed") return false;
  return processes.every((process) => !reached.includes(process.uid) || livesOn(process, sandbox));
}

/**
 * A process that is no longer what its sandbox is may be taken up by a resume that is under way. When another runs in its
 * place, the owner wanted the files alone, or another worker: frozen, it only waits for its end.
 */
function livesOn(process: LivingProcess, { state, current }: LivingSandbox): boolean {
  return process.state !== "gone" && (process.activation === current || state === "resuming");
}
