// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isSpaceError, type RuntimeRecord } from "@space/model";
import { orderOf, retires } from "@space/worker/record-order";
import {
  admitsAt,
  certificateOf,
  generations,
  identityOf,
  type Place,
  recordOf,
} from "./model-identities.ts";

/** What the product decides, as the model asks for it. A planted fault replaces one of these. */
export interface ProtocolRules {
  /** whether the record changes, and so becomes this generation's. */
  readonly installs: (record: RuntimeRecord | undefined, place: Place) => boolean;
  /** whether the record becomes a tombstone. */
  readonly retires: (record: RuntimeRecord | undefined, place: Place) => boolean;
  /** */
  readonly admits: (capability: Place, record: RuntimeRecord | undefined) => boolean;
  /** whether a successor may start while what runs on this worker was neither retired there nor out of its lease. */
  readonly mayFollow: (isConfirmed: boolean, isLeased: boolean) => boolean;
  /** whether an answer that was asked for when the cache held `expected` replaces what it holds now. */
  readonly replaces: (held: string, expected: string) => boolean;
  /** Whether a worker without a lease refuses. */
  readonly fences: boolean;
}

export const productRules: ProtocolRules = {
  installs: (record, place) => {
    if (record === undefined) return true;
    const { certificate, token } = certificateOf(place);
    try {
      return orderOf(record, certificate, token) !== "same";
    } catch (error) {
      if (isSpaceError(error)) return false; // refused: nothing changes
      throw error;
    }
  },
  retires: (record, place) => record !== undefined && retires(record, identityOf(place)),
  admits: admitsAt,
  mayFollow: (isConfirmed, isLeased) => isConfirmed || !isLeased,
  replaces: (held, expected) => held === "" || held === expected,
  fences: true,
};

/** Everything that the installation is at one instant, as plain text and numbers: two equal states are one. */
export interface ProtocolState {
  /** The generation that was claimed last, and where; 0: none yet. */
  readonly claimed: number;
  readonly at: number;
  readonly phase: "none" | "starting" | "running" | "ending" | "ended";
  /** Generations whose retirement their worker has confirmed. */
  readonly confirmed: readonly boolean[];
  /** Where each generation was placed; -1: never. */
  readonly placed: readonly number[];
  readonly workers: readonly WorkerState[];
  /** What is on its way: `install g`, `retire g`, `ack-install g`, `ack-retire g`. */
  readonly messages: readonly string[];
  readonly gateways: readonly GatewayState[];
}

export interface WorkerState {
  /** Generation of its record, 0 for none. */
  readonly generation: number;
  readonly retired: boolean;
  /** Generations whose process runs here. */
  readonly processes: readonly number[];
  readonly leased: boolean;
}

export interface GatewayState {
  /** The route that it holds, as `generation@worker`; empty for none. */
  readonly entry: string;
  /** A look-up under way: what the cache held when it began, and what the control plane answered. */
  readonly lookup: { readonly expected: string; readonly answer: string } | null;
}

export interface Step {
  readonly name: string;
  readonly next: ProtocolState;
  /** What this very step did wrong. */
  readonly broken?: string;
}

/** The one form of states that differ in nothing: what is on its way and can change nothing any more, and which gateway is which. */
export function normalised(state: ProtocolState): ProtocolState {
  const { claimed, phase, placed, confirmed, workers: at } = state;
  const messages = state.messages.filter((message) => {
    const [kind, text] = message.split(" ");
    const generation = Number(text);
    if (kind === "ack-install") return generation === claimed && phase === "starting";
    if (kind === "ack-retire") return confirmed[generation] !== true;
    if (kind === "install") return at[placed[generation] ?? 0]?.processes.includes(generation) === true;
    return true;
  });
  const gateways = state.gateways.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return { ...state, messages, gateways };
}

const workers = [0, 1] as const;
export const workersCount: number = workers.length;

/** Nothing has happened yet. */
export const firstState = (gateways: number): ProtocolState => ({
  claimed: 0,
  at: 0,
  phase: "none",
  confirmed: Array.from({ length: generations + 1 }, () => false),
  placed: Array.from({ length: generations + 1 }, () => -1),
  workers: workers.map(() => ({ generation: 0, retired: false, processes: [], leased: true })),
  messages: [],
  gateways: Array.from({ length: gateways }, () => ({ entry: "", lookup: null })),
});

/** Every step that can happen now. */
export function stepsFrom(state: ProtocolState, rules: ProtocolRules): readonly Step[] {
  return [
    ...controlSteps(state, rules),
    ...state.messages.flatMap((message) => messageSteps(state, message, rules)),
    ...workers.flatMap((at) => workerSteps(state, at)),
    ...state.gateways.flatMap((_gateway, at) => gatewaySteps(state, at, rules)),
  ];
}

function controlSteps(state: ProtocolState, rules: ProtocolRules): Step[] {
  const { claimed, phase, placed, confirmed } = state;
  const steps: Step[] = [];
  if ((phase === "none" || phase === "ended") && claimed < generations) {
    const next = claimed + 1;
    for (const at of workers) {
      const isFree = placed.every((worker, generation) => {
        if (worker < 0 || worker === at) return true;
        return rules.mayFollow(confirmed[generation] === true, state.workers[worker]?.leased === true);
      });
      if (isFree) steps.push({ name: `claim ${next} on ${at}`, next: started(state, next, at) });
    }
  }
  if (phase === "running" || phase === "starting") {
    const ending = withMessage({ ...state, phase: "ended" }, `retire ${claimed}`);
    steps.push({ name: `end ${claimed}`, next: ending });
  }
  return steps;
}

/** A worker that has a lease starts the process; its certificate is on its way to it. */
function started(state: ProtocolState, generation: number, at: number): ProtocolState {
  const placed = state.placed.map((worker, of) => (of === generation ? at : worker));
  const claimed: ProtocolState = { ...state, claimed: generation, at, phase: "starting", placed };
  const worker = state.workers[at];
  if (worker?.leased !== true) return claimed;
  const processes = [...worker.processes, generation];
  return withMessage(withWorker(claimed, at, { ...worker, processes }), `install ${generation}`);
}

/**
 * What was sent can arrive at any time from then on, again and again, or never: so a message that is lost, late, doubled
 * or overtaken needs no step of its own.
 */
function messageSteps(state: ProtocolState, message: string, rules: ProtocolRules): Step[] {
  const [kind = "", text = "0"] = message.split(" ");
  return [{ name: message, ...judged(state, delivered(state, kind, Number(text), rules)) }];
}

/** no record ever goes back, and none ends that nobody has ended. */
function judged(before: ProtocolState, next: ProtocolState): Omit<Step, "name"> {
  const wentBack = next.workers.some((worker, at) => {
    const old = before.workers[at];
    if (old === undefined) return false;
    const isRevived = old.retired && !worker.retired && old.generation === worker.generation;
    return worker.generation < old.generation || isRevived;
  });
  if (wentBack) return { next, broken: "R-12: a record went back" };
  const retiresCurrent = next.workers.some((worker, at) => {
    const wasInstalled = before.workers[at]?.retired === false && worker.generation === before.claimed;
    return before.phase === "running" && wasInstalled && worker.retired;
  });
  return retiresCurrent ? { next, broken: "R-12: what runs was retired, and nobody had ended it" } : { next };
}

function delivered(
  state: ProtocolState,
  kind: string,
  generation: number,
  rules: ProtocolRules,
): ProtocolState {
  const at = state.placed[generation] ?? 0;
  const worker = state.workers[at];
  if (worker === undefined) return state;
  const place = { generation, worker: at };
  const record = recordOf(worker, at);
  switch (kind) {
    case "install": {
      if (!worker.processes.includes(generation)) return state; // nothing runs that it could name
      const isNew = rules.installs(record, place);
      const isHeld = worker.generation === generation && !worker.retired;
      if (!isNew && !isHeld) return state; // refused
      const installed = isNew ? { ...worker, generation, retired: false } : worker;
      return withMessage(withWorker(state, at, installed), `ack-install ${generation}`);
    }
    case "retire": {
      const isRetired = rules.retires(record, place);
      const processes = worker.processes.filter((other) => other !== generation);
      const next = { ...worker, processes, retired: worker.retired || isRetired };
      return withMessage(withWorker(state, at, next), `ack-retire ${generation}`);
    }
    case "ack-install":
      return state.claimed === generation && state.phase === "starting"
        ? { ...state, phase: "running" }
        : state;
    default:
      return { ...state, confirmed: state.confirmed.map((held, of) => held || of === generation) };
  }
}

/** A lease runs out; a daemon crashes and comes back with what its disk holds; what is not retired keeps running. */
function workerSteps(state: ProtocolState, at: number): Step[] {
  const worker = state.workers[at];
  if (worker === undefined) return [];
  const steps: Step[] = [];
  if (worker.leased)
    steps.push({ name: `lease of ${at} ends`, next: withWorker(state, at, { ...worker, leased: false }) });
  if (!worker.leased && owesNothing(state, at))
    steps.push({ name: `lease of ${at} is back`, next: withWorker(state, at, { ...worker, leased: true }) });
  const older = worker.processes.filter((generation) => generation < worker.generation);
  if (older.length > 0) {
    const processes = worker.processes.filter((generation) => generation >= worker.generation);
    steps.push({
      name: `older processes of ${at} end`,
      next: withWorker(state, at, { ...worker, processes }),
    });
  }
  if (worker.processes.length > 0)
    steps.push({ name: `power of ${at} is lost`, next: withWorker(state, at, { ...worker, processes: [] }) });
  return steps;
}

/** no renewal while a retirement is unconfirmed. */
function owesNothing({ placed, confirmed, claimed, phase }: ProtocolState, at: number): boolean {
  return placed.every((worker, generation) => {
    const isOver = generation < claimed || phase === "ended" || phase === "none";
    return worker !== at || !isOver || confirmed[generation] === true;
  });
}

function gatewaySteps(state: ProtocolState, at: number, rules: ProtocolRules): Step[] {
  const gateway = state.gateways[at];
  if (gateway === undefined) return [];
  const steps: Step[] = [];
  if (gateway.lookup === null && state.phase === "running") {
    const answer = `${state.claimed}@${state.at}`;
    const asking = { ...gateway, lookup: { expected: gateway.entry, answer } };
    steps.push({ name: `gateway ${at} asks`, next: withGateway(state, at, asking) });
  }
  if (gateway.lookup !== null) {
    const { expected, answer } = gateway.lookup;
    const entry = rules.replaces(gateway.entry, expected) ? answer : gateway.entry;
    const broken =
      generationOf(entry) < generationOf(gateway.entry)
        ? "R-24: a late answer displaced a newer entry"
        : undefined;
    const next = withGateway(state, at, { entry, lookup: null });
    steps.push({ name: `gateway ${at} hears ${answer}`, next, ...(broken === undefined ? {} : { broken }) });
  }
  const presented = gateway.entry === "" ? [] : [presentation(state, at, gateway.entry, rules)];
  return [...steps, ...presented];
}

/** Another request of the same gateway has learnt of the newest route meanwhile: only then can an answer be late. */
function presentation(state: ProtocolState, at: number, entry: string, rules: ProtocolRules): Step {
  const capability = { generation: generationOf(entry), worker: Number(entry.split("@")[1]) };
  const worker = state.workers[capability.worker];
  const gateway = state.gateways[at] ?? { entry, lookup: null };
  if (worker === undefined) return { name: "nowhere", next: state };
  const serves = (worker.leased || !rules.fences) && worker.processes.includes(worker.generation);
  const isAdmitted = serves && rules.admits(capability, recordOf(worker, capability.worker));
  if (!isAdmitted) {
    const fresh = state.phase === "running" ? `${state.claimed}@${state.at}` : "";
    const repaired = withGateway(state, at, { ...gateway, entry: fresh });
    return { name: `gateway ${at} is sent on from ${entry}`, next: repaired };
  }
  const name = `gateway ${at} reaches ${worker.generation} on ${capability.worker} with ${entry}`;
  if (worker.generation !== capability.generation)
    return { name, next: state, broken: "statement 1: an operation reached another execution" };
  const isSuperseded = capability.generation < state.claimed && state.phase === "running";
  return isSuperseded
    ? { name, next: state, broken: "statement 2: an older incarnation served beside its successor" }
    : { name, next: state };
}

function generationOf(entry: string): number {
  return entry === "" ? 0 : Number(entry.split("@")[0]);
}

function withMessage(state: ProtocolState, message: string): ProtocolState {
  return state.messages.includes(message)
    ? state
    : { ...state, messages: [...state.messages, message].toSorted() };
}

function withWorker(state: ProtocolState, at: number, worker: WorkerState): ProtocolState {
  const sorted = { ...worker, processes: [...new Set(worker.processes)].toSorted((a, b) => a - b) };
  return { ...state, workers: state.workers.map((old, of) => (of === at ? sorted : old)) };
}

function withGateway(state: ProtocolState, at: number, gateway: GatewayState): ProtocolState {
  return { ...state, gateways: state.gateways.map((old, of) => (of === at ? gateway : old)) };
}
