// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Predecessor } from "./control-decisions.ts";
import {
  type CoreState,
  executionOf,
  generationsOf,
  type Order,
  type Phase,
  withExecution,
  withWorker,
  workers,
} from "./core-state.ts";
import type { Rules } from "./rules.ts";

/** One thing that can happen now. */
export interface CoreStep {
  readonly name: string;
  readonly next: CoreState;
}

/** Whether somebody drives the start of this generation, and waits for its worker's answers. */
export function isAwaited({ phase, executions }: CoreState, generation: number): boolean {
  return generation === executions.length && (phase === "creating" || phase === "resuming");
}

/** the retirements that this worker, or any, has not acknowledged. */
function owed(state: CoreState, at?: number): Predecessor[] {
  return generationsOf(state).flatMap((generation) => {
    const { order, at: worker } = executionOf(state, generation);
    const isOwed = (order === "told" || order === "done") && (at === undefined || at === worker);
    return isOwed ? [{ generation, worker }] : [];
  });
}

/** What the control plane can do now. */
export function controlSteps(state: CoreState, rules: Rules): CoreStep[] {
  return [
    ...claims(state, rules),
    ...starts(state, rules),
    ...pauseSteps(state, rules),
    ...ends(state, rules),
    ...acknowledgements(state),
  ];
}

function claims(state: CoreState, { decisions, generations }: Rules): CoreStep[] {
  const { executions, phase, workers: all } = state;
  const generation = executions.length + 1;
  const to = phase === "none" ? "creating" : "resuming";
  if (phase === "pausing" || generation > generations || !decisions.enters(phase, to)) return [];
  // The workers are alike until one of them is chosen: that one is number 0.
  const choice = generation === 1 ? [0] : workers;
  const isOver = all.map((worker) => worker.isOver);
  return choice
    .filter((at) => decisions.mayFollow(owed(state), at, isOver))
    .map((at) => ({ name: `control claims ${generation} on worker ${at}`, next: claimed(state, at, to) }));
}

function claimed(state: CoreState, at: number, phase: Phase): CoreState {
  const execution = {
    at,
    command: "none",
    isCertified: false,
    isPublished: false,
    runs: false,
    order: "none",
    pause: "none",
    isQuiet: false,
    isWritten: false,
  } as const;
  return { ...state, phase, executions: [...state.executions, execution] };
}

/** activate, certify, install, publish. */
function starts(state: CoreState, rules: Rules): CoreStep[] {
  const { guards, decisions } = rules;
  const late = guards.comparesRevision ? [] : lateSteps(state, rules);
  const generation = state.executions.length;
  if (!isAwaited(state, generation)) return late;
  const { command, at } = executionOf(state, generation);
  const to = (change: Parameters<typeof withExecution>[2]): CoreState =>
    withExecution(state, generation, change);
  switch (command) {
    case "none": {
      if (guards.flushes && owed(state, at).length > 0) return late;
      const isOver = state.workers.map((worker) => worker.isOver);
      if (!decisions.mayFollow(owed(state), at, isOver)) return late;
      return [...late, { name: `control sends activate ${generation}`, next: to({ command: "activate" }) }];
    }
    case "started": {
      const next = to({ command: "install", isCertified: true });
      return [...late, { name: `control certifies ${generation}`, next }];
    }
    case "install":
      return guards.installsFirst ? late : [...late, ...published(state, generation, rules)];
    case "installed":
      return [...late, ...published(state, generation, rules)];
    case "activate":
    case "over":
      return late;
  }
}

function published(state: CoreState, generation: number, { decisions }: Rules): CoreStep[] {
  if (!decisions.enters(state.phase, "running")) return [];
  const next = withExecution({ ...state, phase: "running" }, state.executions.length, {
    isPublished: true,
  });
  return [
    { name: `control publishes ${generation}`, next: withExecution(next, generation, { command: "over" }) },
  ];
}

/** Who drove the start of an earlier generation hears of its install only now. */
function lateSteps(state: CoreState, rules: Rules): CoreStep[] {
  return generationsOf(state).flatMap((generation) => {
    const isLate = executionOf(state, generation).command === "installed" && !isAwaited(state, generation);
    return isLate ? published(state, generation, rules) : [];
  });
}

/** Each end is one conditional write, with the order to retire what may run. */
function ends(state: CoreState, rules: Rules): CoreStep[] {
  const { phase } = state;
  const isOpen = phase === "running" || phase === "pausing";
  return [
    ...(phase === "creating" ? ended(state, "gives up", "failed", rules) : []),
    ...(phase === "resuming" ? ended(state, "gives up", "paused", rules) : []),
    ...(isOpen ? ended(state, "has lost", "lost", rules) : []),
    ...(phase === "none" ? [] : ended(state, "kills", "killing", rules)),
    ...(phase === "killing" ? ended(state, "has killed", "killed", rules) : []),
  ];
}

function ended(
  state: CoreState,
  what: string,
  to: Exclude<Phase, "none">,
  { decisions, guards }: Rules,
): CoreStep[] {
  const generation = state.executions.length;
  if (!decisions.enters(state.phase, to)) return [];
  const { order } = executionOf(state, generation);
  const told = guards.writesOrders && order === "none" ? "told" : order;
  const next = withExecution({ ...state, phase: to }, generation, { order: told });
  return [{ name: `control ${what} ${generation}`, next }];
}

/**
 * Snapshot, then commit; or the abort, recorded first, so that no commit on the older revision can win any more, and done
 * at the worker before the sandbox counts as running again (incident 31). One whose answer is lost is asked again.
 */
function pauseSteps(state: CoreState, rules: Rules): CoreStep[] {
  const { phase } = state;
  const { decisions, guards } = rules;
  const generation = state.executions.length;
  const to = (what: string, change: Parameters<typeof withExecution>[2], into: Phase): CoreStep => ({
    name: `control ${what} ${generation}`,
    next: withExecution({ ...state, phase: into }, generation, change),
  });
  if (phase === "running" && decisions.enters(phase, "pausing"))
    return [to("asks for a snapshot of", { pause: "asked" }, "pausing")];
  if (phase !== "pausing") return [];
  const { pause } = executionOf(state, generation);
  const mayCommit = pause === "snapshot" || (pause === "aborted" && !guards.recordsAborts);
  return [
    ...(mayCommit ? ended(state, "has paused", "paused", rules) : []),
    ...(mayCommit ? moves(state, rules) : []),
    ...(pause === "asked" || pause === "aborting"
      ? []
      : [to("aborts the pause of", { pause: "aborting" }, phase)]),
    ...(pause === "aborted" && decisions.enters(phase, "running")
      ? [to("hears that the pause is aborted of", { pause: "none" }, "running")]
      : []),
  ];
}

/** A move: the commit of the pause, with its order, and the claim of the next generation elsewhere are one write. */
function moves(state: CoreState, rules: Rules): CoreStep[] {
  const generation = state.executions.length;
  if (generation >= rules.generations) return [];
  const from = executionOf(state, generation).at;
  return ended(state, "commits the move of", "resuming", rules).flatMap(({ name, next }) =>
    workers
      .filter((at) => at !== from)
      .map((at) => ({ name: `${name} to worker ${at}`, next: claimed(next, at, "resuming") })),
  );
}

function acknowledgements(state: CoreState): CoreStep[] {
  return generationsOf(state).flatMap((generation) => {
    const { order } = executionOf(state, generation);
    const next = (to: Order): CoreState => withExecution(state, generation, { order: to });
    return order === "done"
      ? [{ name: `control hears that ${generation} is retired`, next: next("acknowledged") }]
      : [];
  });
}

/**
 * A grant is one step with its arrival, and a lease that is held is not renewed: a worker that is granted one later,
 * or holds it with a gap, does nothing that one which holds it all the while and loses messages does not.
 */
export function leaseSteps(state: CoreState, { decisions: { leases } }: Rules): CoreStep[] {
  const steps = state.workers.flatMap(({ holds, isOver }, at): CoreStep[] => {
    const isGranted = owed(state, at).length > 0 ? leases.grantsOwing : leases.grants;
    const to = (name: string, change: Parameters<typeof withWorker>[2]): CoreStep => ({
      name,
      next: withWorker(state, at, change),
    });
    return [
      ...(holds ? [to(`the lease of worker ${at} ends`, { holds: false })] : []),
      ...(!holds && isGranted ? [to(`worker ${at} is granted a lease`, { holds: true, isOver: false })] : []),
      ...(!isOver && (holds ? leases.isOverWhileHeld : leases.isOverAfter)
        ? [to(`control counts the lease of worker ${at} as over`, { isOver: true })]
        : []),
    ];
  });
  const restarted = state.workers.map((worker) => ({
    ...worker,
    isOver: worker.holds ? leases.isOverAtStart : worker.isOver && leases.isOverAtStart,
  }));
  return [...steps, { name: "control starts again", next: { ...state, workers: restarted } }];
}
