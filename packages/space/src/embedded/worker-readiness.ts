// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { SpaceError } from "@space/model";
import { systemClock } from "../host/system-clock.ts";
import type { WorkerProcess, WorkerSupervisor } from "./worker-supervisor.ts";

/** For the first worker, and for each: a daemon and its bridge boot two Nodes, which many at once do one after the other. */
const workersReadyLimitMs = { first: 30_000, each: 5_000 } as const;
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
 * their logs when they take too long.
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
    if (systemClock.monotonicMs() > deadlineMs) {
      const logs = workers.map(({ logPath }) => `${logPath}:\n${tail(logPath)}`).join("\n");
      throw new Error(`the workers did not connect within ${limitMs} ms\n${logs}`);
    }
    await new Promise<void>((resolve) => systemClock.after(lookEveryMs, resolve));
  }
}

function tail(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(-6).join("\n") : "(empty)";
}
