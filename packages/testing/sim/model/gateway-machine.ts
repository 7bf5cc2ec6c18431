// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Decisions } from "./decisions.ts";

/** A look-up under way. */
export interface Lookup {
  /** The generation of the entry that the cache held when it began; 0: none. */
  readonly expected: number;
  /** The generation after whose rejection it began; 0: after none. */
  readonly rejected: number;
  /** Generations on which requests were rejected that wait for this look-up: one bit each. */
  readonly waiting: number;
  /** What the control plane answered: a generation, 0 for none; undefined: it has not read its store yet. */
  readonly answer: number | undefined;
}

/** What a gateway holds for one caller, sandbox and access. An entry is its generation: each has one route. */
export interface Gateway {
  readonly entry: number;
  readonly isDoubted: boolean;
  readonly newest: Lookup | undefined;
  /** One that began before the newest, and is not joined any more. */
  readonly older: Lookup | undefined;
}

/** All that a gateway can see of the rest at one instant. */
export interface Surroundings {
  /** The generation that the control plane would answer; 0: none. */
  readonly running: number;
  /** The generations that their worker would reject now, so that a rejection may arrive from now on: one bit each. */
  readonly rejected: number;
}

export interface GatewayStep {
  readonly name: string;
  readonly next: Gateway;
  /** The invariant that this step was held against, and whether it breaks it. */
  readonly judged?: Judgement;
}

export interface Judgement {
  readonly invariant: string;
  readonly isBroken: boolean;
}

const noLateAnswer = "R-24: no late answer displaces a newer entry";
const noOtherDoubted = "R-24: a late rejection puts no entry in doubt but the one that was rejected";
const notPresentedAgain = "R-24: a rejected entry is not presented again";
const notGivenAgain = "R-24: who was rejected on a route is not given that route again";

export const gatewayInvariants: readonly string[] = [
  noLateAnswer,
  noOtherDoubted,
  notPresentedAgain,
  notGivenAgain,
];

export const firstGateway: Gateway = { entry: 0, isDoubted: false, newest: undefined, older: undefined };

const bit = (generation: number): number => 1 << (generation - 1);

/** Everything that can happen at a gateway. */
export function gatewaySteps(gateway: Gateway, around: Surroundings, decisions: Decisions): GatewayStep[] {
  const steps = [
    ...slotSteps(gateway),
    ...lookupSteps(gateway, around, decisions),
    ...[1, 2, 3]
      .filter((generation) => (around.rejected & bit(generation)) !== 0)
      .map((generation) => rejection(gateway, generation, decisions)),
  ];
  return steps.map((step) => ({ ...step, next: reduced(step.next, decisions) }));
}

/** An entry ends, or is let go for its age, its key or its certificate; a request that finds none looks up. */
function slotSteps(gateway: Gateway): GatewayStep[] {
  const { entry, newest } = gateway;
  const steps: GatewayStep[] = [];
  if (entry !== 0)
    steps.push({ name: `lets go of its entry ${entry}`, next: { ...gateway, entry: 0, isDoubted: false } });
  if (newest === undefined) steps.push({ name: "looks up", next: looksUp(gateway, 0) });
  else steps.push({ name: "forgets who looks up", next: { ...gateway, newest: undefined, older: newest } });
  return steps;
}

function looksUp(gateway: Gateway, rejected: number): Gateway {
  const { entry, newest, older } = gateway;
  const waiting = rejected === 0 ? 0 : bit(rejected);
  return {
    ...gateway,
    newest: { expected: entry, rejected, waiting, answer: undefined },
    older: newest ?? older,
  };
}

function lookupSteps(gateway: Gateway, around: Surroundings, decisions: Decisions): GatewayStep[] {
  return (["newest", "older"] as const).flatMap((which) => {
    const lookup = gateway[which];
    if (lookup === undefined) return [];
    const ends = (end: "found" | "nothing" | "unavailable"): GatewayStep =>
      settled({ ...gateway, [which]: undefined }, lookup, { isNewest: which === "newest", end, decisions });
    const failed = { ...ends("unavailable"), name: "gets no answer" };
    if (lookup.answer !== undefined) return [failed, ends(lookup.answer === 0 ? "nothing" : "found")];
    return [failed, answered(gateway, which, { ...lookup, answer: around.running })];
  });
}

function answered(
  gateway: Gateway,
  which: "newest" | "older",
  lookup: Lookup & { readonly answer: number },
): GatewayStep {
  const { answer, waiting } = lookup;
  const isStale = answer !== 0 && (waiting & bit(answer)) !== 0;
  const name = `is answered ${answer === 0 ? "that nothing runs" : answer}`;
  const next = { ...gateway, [which]: lookup };
  return waiting === 0 ? { name, next } : judged({ name, next }, notGivenAgain, isStale);
}

interface Ending {
  readonly isNewest: boolean;
  readonly end: "found" | "nothing" | "unavailable";
  readonly decisions: Decisions;
}

/** R-24, by the cache's own decision. */
function settled(gateway: Gateway, lookup: Lookup, { isNewest, end, decisions }: Ending): GatewayStep {
  const { entry, isDoubted } = gateway;
  const { expected, answer = 0 } = lookup;
  const held = entry === 0 ? undefined : { cached: entry, doubted: isDoubted };
  const change = decisions.slotAfter(held, {
    isNewest,
    expected: expected === 0 ? undefined : expected,
    end,
  });
  const name = end === "nothing" ? "hears that nothing runs" : `hears of ${answer}`;
  switch (change) {
    case "keep":
      return { name, next: gateway };
    case "remove":
      return { name, next: { ...gateway, entry: 0, isDoubted: false } };
    case "replace":
      return judged(
        { name, next: { ...gateway, entry: answer, isDoubted: false } },
        noLateAnswer,
        answer < entry,
      );
  }
}

/** a rejection of `generation` arrives, however late: the repair. */
function rejection(gateway: Gateway, generation: number, decisions: Decisions): GatewayStep {
  const name = `hears that a worker rejects ${generation}`;
  const { entry } = gateway;
  const isDoubted = gateway.isDoubted || (entry !== 0 && decisions.isDoubted(entry, generation));
  const doubting = { ...gateway, isDoubted };
  if (entry !== 0 && entry !== generation)
    return judged(
      repaired(doubting, generation, { name, decisions }),
      noOtherDoubted,
      isDoubted !== gateway.isDoubted,
    );
  if (entry === generation && !isDoubted) return judged({ name, next: doubting }, notPresentedAgain, true);
  const step = repaired(doubting, generation, { name, decisions });
  return entry === generation && step.judged === undefined ? judged(step, notPresentedAgain, false) : step;
}

function repaired(
  gateway: Gateway,
  generation: number,
  { name, decisions }: { readonly name: string; readonly decisions: Decisions },
): GatewayStep {
  const { entry, isDoubted, newest } = gateway;
  const way = decisions.repairBy({
    rejected: generation,
    hasUsable: entry !== 0 && !isDoubted,
    newest: newest && { rejected: newest.rejected === 0 ? undefined : newest.rejected },
  });
  if (way === "take") return { name, next: gateway };
  if (way === "ask" || newest === undefined) return { name, next: looksUp(gateway, generation) };
  const waiting = newest.waiting | bit(generation);
  const next = { ...gateway, newest: { ...newest, waiting } };
  return judged({ name, next }, notGivenAgain, newest.answer === generation);
}

function judged(step: GatewayStep, invariant: string, isBroken: boolean): GatewayStep {
  // What a step breaks is not hidden by what it keeps.
  return step.judged?.isBroken === true ? step : { ...step, judged: { invariant, isBroken } };
}

/**
 * Drops what can matter no more: a look-up that is not the newest, if its end changes no slot; what was held when a look-up
 * began, if the slot is empty now; who waits for an answer that is there and was judged.
 */
function reduced(gateway: Gateway, decisions: Decisions): Gateway {
  const { entry, newest, older } = gateway;
  const trimmed = (lookup: Lookup | undefined): Lookup | undefined =>
    lookup && {
      ...lookup,
      expected: entry === 0 ? 0 : lookup.expected,
      waiting: lookup.answer === undefined ? lookup.waiting : 0,
    };
  return { ...gateway, newest: trimmed(newest), older: decisions.olderMatters ? trimmed(older) : undefined };
}
