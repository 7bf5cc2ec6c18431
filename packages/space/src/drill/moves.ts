// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { type BoundedRate, boundedRate } from "./bounded-rate.ts";
import { Caller, type SandboxAddress } from "./caller.ts";
import { openSecondGateway } from "./drill-system.ts";
import { countOne } from "./named-sandboxes.ts";
import { type Outcome, readOutcome, runOutcome } from "./outcome.ts";
import { Owner } from "./owner.ts";

export interface MovesOptions {
  readonly callers: number;
  /** Pauses, each with a resume on the other worker. */
  readonly cycles: number;
  readonly sandboxes: number;
  /** A caller's rest between two operations. */
  readonly paceMs: number;
}

export interface MovesReport {
  readonly drill: "moves";
  readonly ok: boolean;
  readonly seconds: number;
  readonly callers: number;
  readonly sandboxes: number;
  readonly cycles: number;
  /** Resumes that really came up on the other worker, as the next generation. */
  readonly moved: number;
  readonly operations: number;
  /** Operations that were told to try again, and how often by each answer; all of them succeeded then, or are errors. */
  readonly triedAgain: Readonly<Record<string, number>>;
  readonly errors: BoundedRate;
  readonly errorKinds: Readonly<Record<string, number>>;
  /** What the first wrong ones said, and what would have been right. */
  readonly wrongAnswers: readonly string[];
  /** Statement 1: what was served, and was another sandbox's or another generation's. */
  readonly wrongDeliveries: BoundedRate;
  readonly repairs: number;
  readonly continuedStreams: number;
}

const identityPath = "/home/user/identity";
/** Every so many operations of a caller run a program; the others read the file. */
const runEvery = 8;
const retryPauseMs = 200;
const retryLimitMs = 60_000;
const movesAtOnce = 2;
const wrongAnswersKept = 10;

/** A sandbox, and which generations its file may name now. */
interface Moved {
  readonly address: SandboxAddress;
  /** The last one whose writing was acknowledged. */
  written: number;
  /** The last one whose writing has begun. */
  writing: number;
  workerId: string;
}

interface Tally {
  operations: number;
  wrong: number;
  readonly wrongAnswers: string[];
  errors: number;
  readonly triedAgain: Record<string, number>;
  readonly errorKinds: Record<string, number>;
  over: boolean;
}

/**
 * Many callers over two gateways read what each sandbox says of itself while the sandboxes move between two workers. Every
 * answer is checked against what that sandbox may say at that time.
 */
export async function drillMoves(system: EmbeddedSystem, options: MovesOptions): Promise<MovesReport> {
  const startedMs = systemClock.monotonicMs();
  const second = await openSecondGateway(system);
  const owner = new Owner(system);
  const urls = [system.apiUrl, second.url];
  const callers = Array.from(
    { length: options.callers },
    (_, at) => new Caller(urls[at % 2] ?? system.apiUrl),
  );
  const tally: Tally = {
    operations: 0,
    wrong: 0,
    wrongAnswers: [],
    errors: 0,
    triedAgain: {},
    errorKinds: {},
    over: false,
  };
  try {
    const cast = await settle(owner, options.sandboxes, system.apiUrl);
    const calling = callers.map((caller, at) => call(caller, cast, tally, { at, paceMs: options.paceMs }));
    const moved = await move({ system, owner, cast, url: second.url, tally }, options.cycles).finally(() => {
      tally.over = true;
    });
    await Promise.all(calling);
    for (const { address } of cast) await owner.kill(address);
    const counts = [system.counters().repairs, second.gateway.counts.repairs];
    return {
      drill: "moves",
      ok: tally.wrong === 0 && tally.errors === 0 && moved === options.cycles,
      seconds: Math.round((systemClock.monotonicMs() - startedMs) / 100) / 10,
      callers: options.callers,
      sandboxes: options.sandboxes,
      cycles: options.cycles,
      moved,
      operations: tally.operations,
      triedAgain: tally.triedAgain,
      errors: boundedRate(tally.errors, tally.operations),
      errorKinds: tally.errorKinds,
      wrongAnswers: tally.wrongAnswers,
      wrongDeliveries: boundedRate(tally.wrong, tally.operations),
      repairs: counts.reduce((sum, count) => sum + count, 0),
      continuedStreams: system.counters().continued + second.gateway.counts.continued,
    };
  } finally {
    for (const caller of callers) caller.close();
    second.close();
  }
}

async function settle(owner: Owner, count: number, url: string): Promise<readonly Moved[]> {
  const cast: Moved[] = [];
  const writer = new Caller(url);
  for (let at = 0; at < count; at += 1) {
    const address = await owner.create();
    const { workerId } = await owner.inspect(address);
    const sandbox: Moved = { address, written: 0, writing: 0, workerId };
    const written = await writeIdentity(writer, sandbox, 1);
    if (written.kind !== "served") throw new UnsoundRun(`not written: ${JSON.stringify(written)}`);
    cast.push(sandbox);
  }
  writer.close();
  return cast;
}

/**
 * The file says whose it is and in which generation it was written. It is replaced whole, so no reader sees half of it.
 * Resolves with what it came to.
 */
async function writeIdentity(writer: Caller, sandbox: Moved, generation: number): Promise<Outcome> {
  sandbox.writing = generation;
  const text = `${sandbox.address.sandboxId} ${generation}`;
  const replace = `printf %s '${text}' >${identityPath}.new && mv ${identityPath}.new ${identityPath} && printf done`;
  const outcome = runOutcome(await writer.start(sandbox.address, "/bin/sh", ["-c", replace]));
  if (outcome.kind === "served") sandbox.written = generation;
  return outcome;
}

interface Stage {
  readonly system: EmbeddedSystem;
  readonly owner: Owner;
  readonly cast: readonly Moved[];
  readonly url: string;
  readonly tally: Tally;
}

/** Moves the sandboxes in turn, a few at a time; resolves with how many really changed worker and generation. */
async function move({ system, owner, cast, url, tally }: Stage, cycles: number): Promise<number> {
  let begun = 0;
  let moved = 0;
  const mover = async (lane: number): Promise<void> => {
    const writer = new Caller(url);
    // Each lane has its own sandboxes, so that no two transitions of one meet.
    const mine = cast.filter((_, at) => at % movesAtOnce === lane);
    for (let turn = 0; begun < cycles && mine.length > 0; turn += 1) {
      begun += 1;
      const sandbox = mine[turn % mine.length];
      if (sandbox === undefined) break;
      const to = system.workerIds.find((workerId) => workerId !== sandbox.workerId);
      await owner.pause(sandbox.address);
      await owner.resume(sandbox.address, to);
      const { workerId, generation } = await owner.inspect(sandbox.address);
      if (workerId === to && generation === sandbox.written + 1) moved += 1;
      sandbox.workerId = workerId;
      tally.operations += 1;
      await untilServed(tally, () => writeIdentity(writer, sandbox, generation));
    }
    writer.close();
  };
  await Promise.all(Array.from({ length: movesAtOnce }, (_, lane) => mover(lane)));
  return moved;
}

async function call(
  caller: Caller,
  cast: readonly Moved[],
  tally: Tally,
  { at, paceMs }: { readonly at: number; readonly paceMs: number },
): Promise<void> {
  for (let turn = 0; !tally.over; turn += 1) {
    const sandbox = cast[(at + turn) % cast.length];
    if (sandbox === undefined) return;
    await operate(caller, sandbox, tally, turn % runEvery === at % runEvery);
    await pause(paceMs);
  }
}

async function operate(caller: Caller, sandbox: Moved, tally: Tally, runs: boolean): Promise<void> {
  tally.operations += 1;
  let lowest = sandbox.written;
  const text = await untilServed(tally, () => {
    lowest = sandbox.written;
    return attempt(caller, sandbox, runs);
  });
  if (text !== undefined && !isRight(text, sandbox, lowest)) note(tally, text, sandbox, lowest);
}

/** One operation, tried again as it is told to, until it is served or has taken too long: an error then. */
async function untilServed(tally: Tally, once: () => Promise<Outcome>): Promise<string | undefined> {
  const untilMs = systemClock.monotonicMs() + retryLimitMs;
  for (;;) {
    const outcome = await once();
    if (outcome.kind === "served") return outcome.text;
    const isLate = systemClock.monotonicMs() > untilMs;
    if (outcome.kind === "try-again") countOne(tally.triedAgain, outcome.what);
    if (outcome.kind === "error" || isLate) {
      tally.errors += 1;
      countOne(tally.errorKinds, outcome.kind === "error" ? outcome.what : "never served");
      return undefined;
    }
    await pause(retryPauseMs);
  }
}

function note(tally: Tally, text: string, { address, writing }: Moved, lowest: number): void {
  tally.wrong += 1;
  if (tally.wrongAnswers.length >= wrongAnswersKept) return;
  const right = `${address.sandboxId} ${lowest}..${writing}`;
  tally.wrongAnswers.push(`${JSON.stringify(text.slice(0, 100))} instead of ${right}`);
}

async function attempt(caller: Caller, { address }: Moved, runs: boolean): Promise<Outcome> {
  // It outlasts its output, so that some runs are cut by a pause and their streams told that the process is gone.
  const program = ["-c", `cat ${identityPath}; sleep 0.5`];
  if (runs) return runOutcome(await caller.start(address, "/bin/sh", program));
  const path = `/files?path=${encodeURIComponent(identityPath)}&username=user`;
  return readOutcome(await caller.get(address, path));
}

/** Whose it is, and of a generation that this sandbox's file could name between the question and the answer. */
function isRight(text: string, { address, writing }: Moved, lowest: number): boolean {
  const [, id, generation] = /^(\S+) ([0-9]+)$/.exec(text) ?? [];
  const said = Number(generation);
  return id === address.sandboxId && said >= lowest && said <= writing;
}
