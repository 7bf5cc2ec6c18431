// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxState } from "@space/model";

export const workersCount = 2;
export const workers: readonly number[] = [0, 1];

/** Where the start of a generation stands: the commands of the control plane to its worker, one after the other. */
export const commands = ["none", "activate", "started", "install", "installed", "over"] as const;
export type Command = (typeof commands)[number];

/** The order that a generation retires: not written; written, and told until it is acknowledged; done; acknowledged. */
export const orders = ["none", "told", "done", "acknowledged"] as const;
export type Order = (typeof orders)[number];

/**
 * Where the pause of a generation stands: the snapshot was asked for; was made, and the answer is on its way; the abort was
 * recorded, and is on its way to the worker; is done.
 */
export const pauses = ["none", "asked", "snapshot", "aborting", "aborted"] as const;
export type Pause = (typeof pauses)[number];

export const phases = [
  "none",
  "creating",
  "running",
  "pausing",
  "paused",
  "resuming",
  "killing",
  "killed",
  "failed",
  "lost",
] as const satisfies readonly ("none" | SandboxState)[];
export type Phase = (typeof phases)[number];

/** One generation, from its claim on. */
export interface Execution {
  /** The worker that it was placed on. */
  readonly at: number;
  readonly command: Command;
  /** Its certificate was signed: whoever saw it can show it to the worker again, at any time. */
  readonly isCertified: boolean;
  /** Gateways were given capabilities for it: they can present them at any time from then on. */
  readonly isPublished: boolean;
  /** Its process exists. */
  readonly runs: boolean;
  readonly order: Order;
  readonly pause: Pause;
  /** Its process stands still for a snapshot, and admits nothing. */
  readonly isQuiet: boolean;
  /** An operation was let in since the snapshot was made. */
  readonly isWritten: boolean;
}

export interface Worker {
  /** The generation of its durable record; 0: none. */
  readonly record: number;
  readonly isRetired: boolean;
  /** It holds a lease, by its own clock. */
  readonly holds: boolean;
  /** The control plane counts its lease as over. */
  readonly isOver: boolean;
}

/** All of the installation but its gateways, at one instant. They only read it. */
export interface CoreState {
  /** Generation g is the one at g - 1: as many as were claimed. */
  readonly executions: readonly Execution[];
  readonly phase: Phase;
  readonly workers: readonly Worker[];
}

/** Nothing has happened yet, and both workers serve. */
export const firstCore: CoreState = {
  executions: [],
  phase: "none",
  workers: workers.map(() => ({ record: 0, isRetired: false, holds: true, isOver: false })),
};

const executionValues = commands.length * orders.length * pauses.length * 2 ** 6;

/** The state as one integer, one to one: every part has its own digits, and all of them stay below 2^53. */
export function packCore({ executions, phase, workers: at }: CoreState): number {
  let packed = phases.indexOf(phase);
  for (const worker of at) packed = packed * 32 + packWorker(worker);
  for (const generation of allGenerations) {
    const execution = executions[generation - 1];
    packed = packed * (executionValues + 1) + (execution === undefined ? 0 : 1 + packExecution(execution));
  }
  if (!Number.isSafeInteger(packed)) throw new TypeError("a state does not fit into one integer");
  return packed;
}

function packWorker({ record, isRetired, holds, isOver }: Worker): number {
  return record * 8 + (isRetired ? 4 : 0) + (holds ? 2 : 0) + (isOver ? 1 : 0);
}

function packExecution(execution: Execution): number {
  const { at, command, isCertified, isPublished, runs, order, pause, isQuiet, isWritten } = execution;
  const told = (commands.indexOf(command) * orders.length + orders.indexOf(order)) * pauses.length;
  const flags = [isCertified, isPublished, runs, isQuiet, isWritten];
  return flags.reduce((all, flag) => all * 2 + (flag ? 1 : 0), (told + pauses.indexOf(pause)) * 2 + at);
}

export function executionOf(state: CoreState, generation: number): Execution {
  const found = state.executions[generation - 1];
  if (found === undefined) throw new TypeError(`generation ${generation} was never claimed`);
  return found;
}

export function workerOf(state: CoreState, at: number): Worker {
  const found = state.workers[at];
  if (found === undefined) throw new TypeError(`there is no worker ${at}`);
  return found;
}

export function withExecution(state: CoreState, generation: number, change: Partial<Execution>): CoreState {
  const executions = state.executions.map((old, at) => (at === generation - 1 ? { ...old, ...change } : old));
  return { ...state, executions };
}

export function withWorker(state: CoreState, at: number, change: Partial<Worker>): CoreState {
  const changed = state.workers.map((old, index) => (index === at ? { ...old, ...change } : old));
  return { ...state, workers: changed };
}

/** The generations claimed so far. */
export function generationsOf({ executions }: CoreState): readonly number[] {
  return allGenerations.slice(0, executions.length);
}

const allGenerations: readonly number[] = [1, 2, 3];
