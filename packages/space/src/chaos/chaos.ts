// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import { withEnding } from "../bench/ending.ts";
import { becomes } from "../drill/waiting.ts";
import { systemClock } from "../host/system-clock.ts";
import { Dice } from "./dice.ts";
import { Door } from "./door.ts";
import { faultNames, injectFaults, planFaults } from "./faults.ts";
import { Installation } from "./installation.ts";
import { Lane } from "./lane.ts";
import type { Stage } from "./stage.ts";
import { type FoundViolation, type OperationCount, Tally } from "./tally.ts";
import { type InstallationMarks, sandboxTraces, type Traces, tracesOf } from "./traces.ts";

export interface ChaosOptions {
  /** The same seed plans the same operations and faults; when they meet is the machine's. */
  readonly seed: string;
  readonly seconds: number;
  readonly sandboxes: number;
  readonly workers: number;
  readonly substrate: "namespace" | "gvisor";
  readonly memory: "frozen" | "criu";
  readonly leaseSeconds: number;
  /** Keeps the data directory and tells where it is, when something was found or an error was answered. */
  readonly keep: boolean;
}

export interface ChaosReport {
  readonly chaos: true;
  readonly ok: boolean;
  readonly seed: string;
  readonly seconds: number;
  readonly substrate: string;
  readonly memory: string;
  /** How each operation was answered. */
  readonly operations: Readonly<Record<string, OperationCount>>;
  readonly answers: {
    readonly all: number;
    readonly served: number;
    /** Documented answers that tell a caller to try again, and all others. */
    readonly again: number;
    readonly errors: number;
    readonly errorRate: number;
  };
  /** How often each fault landed, and how many operations of each kind were under way then. */
  readonly faults: Readonly<Record<string, number>>;
  readonly interrupted: Readonly<Record<string, number>>;
  /** The first errors: when, at which operation, of which sandbox. */
  readonly errorSamples: readonly string[];
  readonly filesChecked: number;
  readonly streamNumbers: number;
  readonly streamEnds: Readonly<Record<string, number>>;
  /** sandboxes that went on from their newest snapshot, or had none; and acknowledged writes that went with them. */
  readonly recovered: number;
  readonly lostForGood: number;
  readonly givenUpWrites: number;
  readonly lostFiles: number;
  readonly wrongDeliveries: number;
  readonly violations: readonly FoundViolation[];
  /** What was still held when every sandbox was killed; and what was left on the host when all had ended. */
  readonly heldForNoSandbox: Traces;
  readonly leaked: Traces;
  /** Faults and operations that never came about: with any of these a run shows too little. */
  readonly missed: readonly string[];
  readonly data?: string;
}

const idsSchema = v.array(v.object({ sandboxID: v.string() }));
const snapshotsSchema = v.array(v.object({ snapshotID: v.string() }));
const wantedOperations = ["create", "write", "read all", "pause", "resume", "move", "fork", "kill"];
/** After the last kill, until workers must have removed everything. */
const clearLimit = { limitMs: 60_000, lookEveryMs: 250 };
const goneLimit = { limitMs: 10_000, lookEveryMs: 100 };
const restBeforeEndMs = 500;

/**
 * Runs a real installation for so long, with sandboxes that are created, used, paused, resumed, moved, forked and killed at
 * random, while its workers, bridges and control plane are killed and stopped. Ends early at the first violation.
 */
export function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  return withEnding(async (ending) => {
    const startedMs = systemClock.monotonicMs();
    const data = mkdtempSync(join(tmpdir(), "space-chaos-"));
    let keeps = options.keep;
    ending.add(() => {
      if (!keeps) rmSync(data, { recursive: true, force: true });
    });
    const args = ["--substrate", options.substrate, "--lease", String(options.leaseSeconds)];
    if (options.substrate === "namespace") args.push("--memory", options.memory);
    const installation = await Installation.start({ data, workers: options.workers, args });
    ending.add(() => installation.stop());
    const doors: Door[] = [];
    ending.add(() => {
      for (const door of doors) door.close();
    });
    const tally = new Tally();
    const stage = stageOf(installation, tally, { doors, endMs: startedMs + options.seconds * 1000 });
    const marks: InstallationMarks = {
      folders: [installation.data, installation.run],
      groups: installation.workers.map(({ group }) => group),
    };
    await act(stage, options);
    const heldForNoSandbox = tally.isOver ? {} : await clear(stage, marks);
    const leaked = await endAll(installation, tally, marks);
    keeps = options.keep && (tally.isOver || tally.errorSamples.length > 0);
    const report = reportOf(tally, { options, startedMs, heldForNoSandbox, leaked });
    return keeps ? { ...report, data } : report;
  });
}

function stageOf(
  installation: Installation,
  tally: Tally,
  { doors, endMs }: { readonly doors: Door[]; readonly endMs: number },
): Stage {
  return {
    run: systemClock.wallMs().toString(36),
    installation,
    tally,
    sandboxes: new Set(),
    windows: [],
    open() {
      const door = new Door(installation);
      doors.push(door);
      return door;
    },
    isOver: () => tally.isOver || systemClock.monotonicMs() >= endMs,
  };
}

async function act(stage: Stage, { seed, sandboxes, workers, leaseSeconds }: ChaosOptions): Promise<void> {
  const dice = (part: string): Dice => new Dice(`${seed} ${part}`);
  const lanes = Array.from({ length: sandboxes }, (_, at) => new Lane(stage, `lane ${at + 1}`, dice));
  const plan = planFaults(dice("faults"), { workers, leaseMs: leaseSeconds * 1000 });
  const guarded = async (work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
      stage.tally.violate({ kind: "the run failed", what });
    }
  };
  await Promise.all([guarded(injectFaults(stage, plan)), ...lanes.map((lane) => guarded(lane.run()))]);
  if (stage.tally.isOver) return;
  await pause(restBeforeEndMs);
  await Promise.all(lanes.map((lane) => guarded(lane.end())));
}

/** Ends what nobody has seen to be made; resolves with what is still held although there is no sandbox any more. */
async function clear(stage: Stage, marks: InstallationMarks): Promise<Traces> {
  const { tally } = stage;
  const door = stage.open();
  const left = await listed(door);
  if (left.length > tally.forksUnknown)
    tally.violate({
      kind: "sandbox of nobody",
      what: `${left.join(", ")}; ${tally.forksUnknown} were never told`,
    });
  for (const sandboxId of left) await door.api("DELETE", `/sandboxes/${sandboxId}`);
  const snapshots = await door.api("GET", "/snapshots");
  if (snapshots.kind === "served")
    for (const { snapshotID } of v.parse(snapshotsSchema, JSON.parse(snapshots.text)))
      await door.api("DELETE", `/templates/${encodeURIComponent(snapshotID)}`);
  const isClear = (): boolean => Object.keys(sandboxTraces(marks)).length === 0;
  if (await becomes(isClear, clearLimit)) return {};
  const held = sandboxTraces(marks);
  tally.violate({ kind: "held for no sandbox", what: Object.keys(held).join(", ") });
  return held;
}

async function listed(door: Door): Promise<readonly string[]> {
  const told = await door.api("GET", "/v2/sandboxes?limit=100&state=running,paused,lost");
  if (told.kind !== "served") return [];
  return v.parse(idsSchema, JSON.parse(told.text)).map(({ sandboxID }) => sandboxID);
}

async function endAll(installation: Installation, tally: Tally, marks: InstallationMarks): Promise<Traces> {
  const code = await installation.stop();
  if (code !== 0) tally.violate({ kind: "not ended in order", what: `${code}: ${installation.output}` });
  // The data directory is this run's own, and goes last.
  const left = (): Traces => {
    const { files: _, ...rest } = tracesOf(marks);
    return rest;
  };
  if (await becomes(() => Object.keys(left()).length === 0, goneLimit)) return {};
  const leaked = left();
  tally.violate({ kind: "leak", what: Object.keys(leaked).join(", ") });
  return leaked;
}

function reportOf(
  tally: Tally,
  run: {
    readonly options: ChaosOptions;
    readonly startedMs: number;
    readonly heldForNoSandbox: Traces;
    readonly leaked: Traces;
  },
): ChaosReport {
  const { options, startedMs, heldForNoSandbox, leaked } = run;
  const { operations, faults, interrupted, violations } = tally;
  const found = (kind: string): number => violations.filter((violation) => violation.kind === kind).length;
  const missed = [
    ...faultNames.filter((name) => faults[name] === undefined),
    ...wantedOperations.filter((name) => (operations[name]?.served ?? 0) === 0),
  ];
  return {
    chaos: true,
    ok: violations.length === 0 && missed.length === 0,
    seed: options.seed,
    seconds: Math.round((systemClock.monotonicMs() - startedMs) / 1000),
    substrate: options.substrate,
    memory: options.substrate === "gvisor" ? "gvisor" : options.memory,
    operations,
    answers: answersOf(Object.values(operations)),
    faults,
    interrupted,
    errorSamples: tally.errorSamples,
    filesChecked: tally.filesChecked,
    streamNumbers: tally.streamNumbers,
    streamEnds: tally.streamEnds,
    recovered: tally.recovered,
    lostForGood: tally.lostForGood,
    givenUpWrites: tally.givenUpWrites,
    lostFiles: found("lost file") + found("sandbox gone") + found("lost without a reason"),
    wrongDeliveries: found("wrong delivery"),
    violations,
    heldForNoSandbox,
    leaked,
    missed,
  };
}

function answersOf(counts: readonly OperationCount[]): ChaosReport["answers"] {
  const sum = (record: Readonly<Record<string, number>>): number =>
    Object.values(record).reduce((total, count) => total + count, 0);
  const served = counts.reduce((total, count) => total + count.served, 0);
  const again = counts.reduce((total, count) => total + sum(count.again), 0);
  const errors = counts.reduce((total, count) => total + sum(count.errors), 0);
  const all = served + again + errors;
  return { all, served, again, errors, errorRate: all === 0 ? 0 : errors / all };
}
