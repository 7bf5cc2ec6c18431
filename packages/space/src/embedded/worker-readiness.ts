// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { SpaceError } from "@space/model";
import { systemClock } from "../host/system-clock.ts";
import type { WorkerProcess, WorkerSupervisor } from "./worker-supervisor.ts";

/** For the first worker, and for each: a daemon and its bridge boot two Nodes, which many at once do one after the other. */
const workersReadyLimitMs = { first: 30_000, each: 5_000 } as const;
/** A worker that ends so often at the start will not do better. */
const endingsLimit = 5;
const lookEveryMs = 10;

/** What became of a worker whose store is refused, and what to do. */
export function supersededText(name: string): string {
  return `${supersededProblem(name)}; ${supersededRemedy(name)}`;
}

function supersededProblem(name: string): string {
  return `${name} was given an old or copied store: what happened since then is not in it, so it is refused`;
}

function supersededRemedy(name: string): string {
  return `put its newest store back, or let it start as a new worker: ./space workers enrol ${name}`;
}

/**
 * Resolves when every worker is connected. Throws `host/unfit` as soon as one's store is refused, and with the ends of
 * their logs when one ends again and again or they take too long.
 */
export async function untilReady(
  ready: () => boolean,
  workers: readonly WorkerProcess[],
  supervisor: WorkerSupervisor,
): Promise<void> {
  const limitMs = workersReadyLimitMs.first + workersReadyLimitMs.each * workers.length;
  const deadlineMs = systemClock.monotonicMs() + limitMs;
  while (!ready()) {
    const [name] = supervisor.superseded;
    if (name !== undefined)
      throw new SpaceError("host/unfit", {
        problem: supersededProblem(name),
        remedy: supersededRemedy(name),
      });
    if (supervisor.mostEndings >= endingsLimit) {
      throw new Error(`a worker ended ${endingsLimit} times before it connected\n${tails(workers)}`);
    }
    if (systemClock.monotonicMs() > deadlineMs) {
      throw new Error(`the workers did not connect within ${limitMs} ms\n${tails(workers)}`);
    }
    await new Promise<void>((resolve) => systemClock.after(lookEveryMs, resolve));
  }
}

function tails(workers: readonly WorkerProcess[]): string {
  return workers.map(({ logPath }) => `${logPath}:\n${tail(logPath)}`).join("\n");
}

function tail(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(-6).join("\n") : "(empty)";
}
