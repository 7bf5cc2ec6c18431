// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CoreStep, isAwaited } from "./control-steps.ts";
import {
  type CoreState,
  executionOf,
  generationsOf,
  withExecution,
  withWorker,
  workerOf,
  workers,
} from "./core-state.ts";
import type { HeldRecord } from "./decisions.ts";
import type { Rules } from "./rules.ts";

/** What can happen at the workers now, with what is on its way to them; for each generation, since each has one worker. */
export function workerSteps(state: CoreState, rules: Rules): CoreStep[] {
  return generationsOf(state).flatMap((generation) => [
    ...arrivals(state, generation, rules),
    ...replays(state, generation, rules),
    ...pauseArrivals(state, generation, rules),
    ...exits(state, generation),
  ]);
}

const stopped = { runs: false, isQuiet: false } as const;

export function recordAt(state: CoreState, at: number): HeldRecord {
  const { record, isRetired } = workerOf(state, at);
  return { generation: record, isRetired, worker: at };
}

/** A command arrives, or its link breaks and it never does. An order to retire is told again until it is acknowledged. */
function arrivals(state: CoreState, generation: number, rules: Rules): CoreStep[] {
  const { command, order, at, pause } = executionOf(state, generation);
  const isUnderWay = command === "activate" || command === "install";
  const isOvertaken = isUnderWay || pause === "asked" || pause === "aborting";
  const steps: CoreStep[] = [];
  if (isUnderWay) {
    const lost = withExecution(state, generation, { command: "over" });
    steps.push({ name: `${command} ${generation} is lost`, next: lost });
  }
  if (command === "activate")
    steps.push({
      name: `worker ${at} is told activate ${generation}`,
      next: activated(state, generation, rules),
    });
  if (command === "install") {
    const isTaken = canInstall(state, generation, rules);
    const next = isTaken ? installed(state, generation, rules) : state;
    const answered = withExecution(next, generation, { command: isTaken ? "installed" : "over" });
    steps.push({
      name: `worker ${at} is told install ${generation}, and ${isTaken ? "does" : "refuses"}`,
      next: answered,
    });
  }
  if (order === "told" && !(isOvertaken && rules.guards.keepsOrder)) {
    const next = withExecution(retired(state, generation, rules), generation, { order: "done" });
    steps.push({ name: `worker ${at} is told retire ${generation}`, next });
  }
  return steps;
}

/** With a lease, a snapshot makes the process stand still; what aborts it lets it go on. Or the link breaks. */
function pauseArrivals(state: CoreState, generation: number, { guards }: Rules): CoreStep[] {
  const { pause, at, runs } = executionOf(state, generation);
  if (pause !== "asked" && pause !== "aborting") return [];
  const { record, isRetired, holds } = workerOf(state, at);
  const isDone = runs && record === generation && !isRetired && (holds || !guards.fences);
  const what = pause === "asked" ? `snapshot ${generation}` : `abort the pause of ${generation}`;
  const done = { pause: "snapshot", isQuiet: guards.quiesces, isWritten: false } as const;
  const undone = { pause: "aborted", isQuiet: false } as const;
  const lost = withExecution(state, generation, { pause: "none" });
  if (!isDone) return [{ name: `${what} is lost, or refused`, next: lost }];
  const next = withExecution(state, generation, pause === "asked" ? done : undone);
  return [
    { name: `worker ${at} is told ${what}`, next },
    { name: `${what} is lost`, next: lost },
  ];
}

/** A certificate and a retirement that were signed once can come again, from whoever saw them, at any time. */
function replays(state: CoreState, generation: number, rules: Rules): CoreStep[] {
  const { isCertified, order, at } = executionOf(state, generation);
  const steps: CoreStep[] = [];
  if (isCertified && canInstall(state, generation, rules)) {
    const next = installed(state, generation, rules);
    steps.push({ name: `worker ${at} is shown the certificate of ${generation} again`, next });
  }
  if (order !== "none") {
    const next = retired(state, generation, rules);
    steps.push({ name: `worker ${at} is shown the retirement of ${generation} again`, next });
  }
  return steps;
}

function exits(state: CoreState, generation: number): CoreStep[] {
  const { runs } = executionOf(state, generation);
  if (!runs) return [];
  return [{ name: `the process of ${generation} ends`, next: withExecution(state, generation, stopped) }];
}

/** with a lease, and only if no such generation or a later one was ever started or installed here. */
function activated(state: CoreState, generation: number, { guards }: Rules): CoreState {
  const { at } = executionOf(state, generation);
  const { holds, record } = workerOf(state, at);
  const isLater = generationsOf(state).some((other) => {
    const { at: elsewhere, runs } = executionOf(state, other);
    return other >= generation && elsewhere === at && runs;
  });
  if ((!holds && guards.fences) || record >= generation || isLater)
    return withExecution(state, generation, { command: "over" });
  const abandoned = endOlder(state, generation, (older) => older !== record);
  const command = isAwaited(state, generation) ? "started" : "over";
  return withExecution(abandoned, generation, { command, runs: true });
}

function endOlder(state: CoreState, generation: number, ends: (older: number) => boolean): CoreState {
  const { at } = executionOf(state, generation);
  const executions = state.executions.map((old, index) => {
    const isOlder = index + 1 < generation && old.at === at && old.runs;
    return isOlder && ends(index + 1) ? { ...old, ...stopped } : old;
  });
  return { ...state, executions };
}

/** whether this certificate is taken here now. */
function canInstall(state: CoreState, generation: number, { decisions, guards }: Rules): boolean {
  const { at, runs } = executionOf(state, generation);
  if (!runs && guards.checksProcess) return false;
  return decisions.install(recordAt(state, at), { generation, worker: at }) !== "refused";
}

function installed(state: CoreState, generation: number, { decisions }: Rules): CoreState {
  const { at } = executionOf(state, generation);
  const isNew = decisions.install(recordAt(state, at), { generation, worker: at }) === "new";
  const recorded = isNew ? withWorker(state, at, { record: generation, isRetired: false }) : state;
  return endOlder(recorded, generation, () => true);
}

/** a tombstone if this is what is installed; what was started as exactly this ends. */
function retired(state: CoreState, generation: number, { decisions }: Rules): CoreState {
  const { at } = executionOf(state, generation);
  const record = recordAt(state, at);
  const ended = withExecution(state, generation, stopped);
  return decisions.retires(record, { generation, worker: at })
    ? withWorker(ended, at, { isRetired: true })
    : ended;
}

/** The execution that an operation with a capability for `generation` reaches at a worker now; 0: none. */
export function reachedBy(
  state: CoreState,
  generation: number,
  at: number,
  { decisions, guards }: Rules,
): number {
  const { record, holds } = workerOf(state, at);
  if (record === 0 || !(holds || !guards.fences)) return 0;
  const { runs, isQuiet } = executionOf(state, record);
  if (!runs || isQuiet) return 0;
  const capability = { generation, worker: executionOf(state, generation).at };
  return decisions.verdict(capability, recordAt(state, at)) === "match" ? record : 0;
}

/** The generations for which somebody has a capability: he may present it at any worker, whatever he was told since. */
export function presentable(state: CoreState): readonly number[] {
  return generationsOf(state).filter((generation) => executionOf(state, generation).isPublished);
}

/** An operation is let in, and changes what it reaches: that matters while a snapshot could still be committed. */
export function operationSteps(state: CoreState, rules: Rules): CoreStep[] {
  return presentable(state).flatMap((capability) =>
    workers.flatMap((at) => {
      const reached = reachedBy(state, capability, at, rules);
      if (reached === 0) return [];
      const next = withExecution(state, reached, { isWritten: true });
      return [{ name: `an operation with a capability for ${capability} writes at worker ${at}`, next }];
    }),
  );
}
