// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { isStopped } from "../drill/is-stopped.ts";
import { becomes } from "../drill/waiting.ts";
import { systemClock } from "../host/system-clock.ts";
import type { Dice } from "./dice.ts";
import type { LossWindow, Stage } from "./stage.ts";

const parts = ["worker", "bridge", "control plane"] as const;
type Part = (typeof parts)[number];
type How = "kill" | "stop" | "stop past its lease";

/** One fault of the plan. */
export interface Fault {
  readonly part: Part;
  readonly how: How;
  /** Which worker's; of no meaning for the control plane. */
  readonly worker: number;
  /** How long it stands still, or, for a killed control plane, until it is started again. */
  readonly holdMs: number;
  /** Then nothing for so long. */
  readonly restMs: number;
}

/** Each so often in a round; rounds follow each other in an order of their own. */
const round: readonly (readonly [Part, How, number])[] = [
  ["worker", "kill", 3],
  ["bridge", "kill", 3],
  ["control plane", "kill", 2],
  ["worker", "stop", 2],
  ["bridge", "stop", 1],
  ["control plane", "stop", 1],
  ["worker", "stop past its lease", 1],
];
const limit = { limitMs: 5000, lookEveryMs: 10 };
const findLimitMs = 20_000;
/** After a worker goes on, until it must have heard what became of its sandboxes. */
const windowAfterMs = 20_000;

/** The name under which a fault is counted. */
export function nameOf({ part, how }: Pick<Fault, "part" | "how">): string {
  return `${how === "kill" ? "SIGKILL" : "SIGSTOP"} ${part}${how === "stop past its lease" ? " past its lease" : ""}`;
}

/** Names of all faults: a run in which one of them never landed has not shown much. */
export const faultNames: readonly string[] = round.map(([part, how]) => nameOf({ part, how }));

/** Faults without an end, the same for the same dice. */
export function* planFaults(
  dice: Dice,
  { workers, leaseMs }: { workers: number; leaseMs: number },
): Generator<Fault> {
  for (;;) {
    const kinds = round.flatMap(([part, how, times]) => Array.from({ length: times }, () => ({ part, how })));
    for (const { part, how } of dice.shuffled(kinds)) {
      const pastMs = how === "stop past its lease" ? leaseMs + 8000 : 0;
      const holdMs = pastMs + dice.between(200, 5000);
      yield { part, how, worker: dice.between(1, workers), holdMs, restMs: dice.between(1500, 7000) };
    }
  }
}

/** Does to the installation what the plan says until the run is over. Whatever was stopped goes on at the end. */
export async function injectFaults(stage: Stage, plan: Iterable<Fault>): Promise<void> {
  for (const fault of plan) {
    await restOf(stage, fault.restMs);
    if (stage.isOver()) return;
    if (fault.part === "control plane") await hitControlPlane(stage, fault);
    else await hitWorker(stage, fault);
  }
}

/** Waits, but not past the end of the run. */
async function restOf(stage: Stage, ms: number): Promise<void> {
  await becomes(() => stage.isOver(), { limitMs: ms, lookEveryMs: 50 });
}

async function hitControlPlane(stage: Stage, fault: Fault): Promise<void> {
  const { installation, tally } = stage;
  const pid = installation.controlPid;
  if (pid === undefined) return;
  if (fault.how === "kill") {
    tally.landed(nameOf(fault));
    await installation.killControlPlane();
    await pause(fault.holdMs / 2);
    await installation.up();
    return;
  }
  installation.standsStill();
  await standStill(stage, pid, fault);
  installation.goesOn();
}

async function hitWorker(stage: Stage, fault: Fault): Promise<void> {
  const { installation, tally } = stage;
  const find = (): number | undefined =>
    fault.part === "worker" ? installation.daemonPid(fault.worker) : installation.bridgePid(fault.worker);
  // The one before may be dying or starting.
  await becomes(() => find() !== undefined || stage.isOver(), { limitMs: findLimitMs, lookEveryMs: 50 });
  const pid = find();
  if (stage.isOver()) return;
  if (pid === undefined) {
    // A worker without sandboxes needs no bridge; a daemon is always there.
    if (fault.part === "worker") tally.violate({ kind: "not started again", what: `worker ${fault.worker}` });
    return;
  }
  if (fault.how === "kill") {
    process.kill(pid, "SIGKILL");
    if (await becomes(() => find() !== pid, limit)) tally.landed(nameOf(fault));
    return;
  }
  const window = fault.how === "stop past its lease" ? openWindow(stage, fault.worker) : undefined;
  try {
    await standStill(stage, pid, fault);
  } finally {
    if (window !== undefined) window.closedAtMs = systemClock.monotonicMs() + windowAfterMs;
  }
}

async function standStill(stage: Stage, pid: number, fault: Fault): Promise<void> {
  process.kill(pid, "SIGSTOP");
  try {
    if (await becomes(() => isStopped(pid), limit)) stage.tally.landed(nameOf(fault));
    await restOf(stage, fault.holdMs);
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

/** from before the worker stands still its sandboxes may be lost, and those that may be on their way to it. */
function openWindow({ installation, windows, sandboxes }: Stage, worker: number): LossWindow {
  const workerId = installation.workers.find(({ index }) => index === worker)?.workerId ?? "";
  const window: LossWindow = { workerId, closedAtMs: undefined };
  windows.push(window);
  for (const sandbox of sandboxes)
    if (sandbox.workerId === workerId || sandbox.workerId === "" || sandbox.isMoving) sandbox.enter(window);
  return window;
}
