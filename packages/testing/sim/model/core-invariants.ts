// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CoreState, executionOf, generationsOf, workerOf, workers } from "./core-state.ts";
import type { Rules } from "./rules.ts";
import { presentable, reachedBy } from "./worker-steps.ts";

/** What must hold, and what it says of a state or of a step: whether it was put to the test there, and failed. */
export interface Invariant {
  readonly name: string;
  /** `idle`: nothing of what it speaks of is the case here. */
  readonly inState?: (state: CoreState, rules: Rules) => Finding;
  readonly inStep?: (before: CoreState, after: CoreState) => Finding;
}

export type Finding = "idle" | "holds" | "broken";

const finding = (isTested: boolean, isBroken: boolean): Finding => {
  if (isBroken) return "broken";
  return isTested ? "holds" : "idle";
};

function reaches(
  state: CoreState,
  rules: Rules,
): readonly { readonly capability: number; readonly reached: number }[] {
  return presentable(state).flatMap((capability) =>
    workers.flatMap((at) => {
      const execution = reachedBy(state, capability, at, rules);
      return execution === 0 ? [] : [{ capability, reached: execution }];
    }),
  );
}

const reachesItsOwn: Invariant = {
  name: "statement 1: an operation reaches only the execution that it names, whatever capability is presented where",
  inState: (state, rules) => {
    const all = reaches(state, rules);
    return finding(
      all.length > 0,
      all.some((one) => one.reached !== one.capability),
    );
  },
};

const oneActs: Invariant = {
  name: "statement 2: at most one incarnation acts: has a process, not frozen, on a worker that holds a lease",
  inState: (state, { guards }) => {
    const acting = generationsOf(state).filter((generation) => {
      const { runs, isQuiet, at } = executionOf(state, generation);
      return runs && !isQuiet && (workerOf(state, at).holds || !guards.fences);
    });
    return finding(acting.length > 0, acting.length > 1);
  },
};

const noneServesBesideSuccessor: Invariant = {
  name: "statement 2, R-15: no incarnation serves when its successor is published",
  inState: (state, rules) => {
    const all = reaches(state, rules);
    const newest = Math.max(0, ...presentable(state));
    return finding(
      newest > 1,
      all.some(({ reached: execution }) => execution < newest),
    );
  },
};

const publishedIsInstalled: Invariant = {
  name: "R-12: what is published is installed at its worker, and no tombstone",
  inState: (state) => {
    const isRunning = state.phase === "running" || state.phase === "pausing";
    if (!isRunning) return "idle";
    const newest = state.executions.length;
    const { record, isRetired } = workerOf(state, executionOf(state, newest).at);
    return finding(true, record !== newest || isRetired);
  },
};

const onlyTheEndedIsRetired: Invariant = {
  name: "R-12: only an execution whose end was written is retired",
  inState: (state) => {
    const tombstones = state.workers.filter(({ isRetired }) => isRetired);
    return finding(
      tombstones.length > 0,
      tombstones.some(({ record }) => executionOf(state, record).order === "none"),
    );
  },
};

const noRecordGoesBack: Invariant = {
  name: "R-12: no record goes back to a lower generation, and no tombstone comes back",
  inStep: (before, after) => {
    const pairs = workers.map((at) => [workerOf(before, at), workerOf(after, at)] as const);
    const isBroken = pairs.some(
      ([old, now]) =>
        now.record < old.record || (old.isRetired && !now.isRetired && now.record === old.record),
    );
    const isTested = pairs.some(([old, now]) => old.record !== now.record || old.isRetired !== now.isRetired);
    return finding(isTested, isBroken);
  },
};

const deleteWins: Invariant = {
  name: "statement 6: a sandbox that was killed stays so",
  inStep: (before, after) => {
    const wasKilled = before.phase === "killing" || before.phase === "killed";
    return finding(wasKilled, wasKilled && after.phase !== "killing" && after.phase !== "killed");
  },
};

const pauseKeepsAll: Invariant = {
  name: "statement 7: what was let in before a pause is reported as done is in its snapshot",
  inStep: (before, after) => {
    const isCommitted =
      before.phase === "pausing" && (after.phase === "paused" || after.phase === "resuming");
    return finding(isCommitted, isCommitted && executionOf(before, before.executions.length).isWritten);
  },
};

const abortedRuns: Invariant = {
  name: "incident 31: a sandbox that runs was not left standing still by a pause",
  inState: (state) => {
    if (state.phase !== "running") return "idle";
    return finding(true, executionOf(state, state.executions.length).isQuiet);
  },
};

const confirmedIsOver: Invariant = {
  name: "R-12, R-16: what was acknowledged as retired neither runs nor can be reached",
  inState: (state, rules) => {
    const over = generationsOf(state).filter((of) => executionOf(state, of).order === "acknowledged");
    return finding(
      over.length > 0,
      over.some(
        (of) => executionOf(state, of).runs || workers.some((at) => reachedBy(state, of, at, rules) === of),
      ),
    );
  },
};

export const coreInvariants: readonly Invariant[] = [
  reachesItsOwn,
  oneActs,
  noneServesBesideSuccessor,
  confirmedIsOver,
  publishedIsInstalled,
  onlyTheEndedIsRetired,
  noRecordGoesBack,
  pauseKeepsAll,
  abortedRuns,
  deleteWins,
];
