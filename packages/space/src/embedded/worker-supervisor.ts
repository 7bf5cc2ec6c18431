// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Clock } from "@space/model";
import { supersededExitCode } from "../worker/exit-codes.ts";

const firstBackoffMs = 100;
const longestBackoffMs = 5_000;
const stopLimitMs = 20_000;

/** What becomes of what a daemon runs: ended with it, or left for the next daemon to adopt. */
export type Ending = "stopAll" | "leave";

export interface WorkerProcess {
  readonly name: string;
  /** The worker's configuration file: its only argument. */
  readonly configPath: string;
  readonly logPath: string;
  /** What goes before its program; empty but in drills. */
  readonly enter: readonly string[];
}

export interface SupervisorOptions {
  readonly program: string;
  readonly workers: readonly WorkerProcess[];
  /** Told each time that a worker ended which should run. */
  readonly onRestart: (name: string, how: string) => void;
  /** Told when a worker's store is not that worker's any more. It is not started again. */
  readonly onSuperseded: (name: string) => void;
}

/**
 * Keeps the worker daemons running. A daemon that ends is started again with a growing pause; what it ran goes on
 * meanwhile. Each daemon's standard input is a pipe to this process: when this process dies, however, the daemon reads
 * the end and stops.
 */
export class WorkerSupervisor {
  readonly #options: SupervisorOptions;
  readonly #clock: Clock;
  readonly #running = new Map<string, ChildProcess>();
  readonly #superseded = new Set<string>();
  readonly #endings = new Map<string, number>();
  #stopping = false;

  constructor(options: SupervisorOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  start(): void {
    for (const worker of this.#options.workers) this.#launch(worker, firstBackoffMs);
  }

  /** The daemon's pid, for tests that kill it and for status. */
  pidOf(name: string): number | undefined {
    return this.#running.get(name)?.pid;
  }

  /** How often the worker that ended most often has ended by itself. */
  get mostEndings(): number {
    return Math.max(0, ...this.#endings.values());
  }

  /** Those whose stores are refused. */
  get superseded(): ReadonlySet<string> {
    return this.#superseded;
  }

  /**
   * Ends every daemon, as told, and waits for all; one that does not end is killed. Where a daemon did not end in order,
   * or none ran, another pass of the program does what was left undone, so that nothing stays which nobody looks after.
   */
  async stop(how: Ending): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#options.workers.map((worker) => this.#stopOne(worker, how)));
  }

  #launch(worker: WorkerProcess, backoffMs: number): void {
    const startedMs = this.#clock.monotonicMs();
    const child = this.#spawn(worker, []);
    this.#running.set(worker.name, child);
    child.once("error", () => this.#ended(worker, "cannot start", backoffMs));
    child.once("exit", (code, signal) => {
      if (code === supersededExitCode) return this.#refused(worker.name);
      const livedMs = this.#clock.monotonicMs() - startedMs;
      this.#ended(worker, signal ?? `code ${code}`, livedMs > longestBackoffMs ? firstBackoffMs : backoffMs);
    });
  }

  #refused(name: string): void {
    this.#running.delete(name);
    this.#superseded.add(name);
    if (!this.#stopping) this.#options.onSuperseded(name);
  }

  #ended(worker: WorkerProcess, how: string, backoffMs: number): void {
    this.#running.delete(worker.name);
    if (this.#stopping) return;
    this.#endings.set(worker.name, (this.#endings.get(worker.name) ?? 0) + 1);
    this.#options.onRestart(worker.name, how);
    this.#clock.after(backoffMs, () => {
      if (!this.#stopping) this.#launch(worker, Math.min(backoffMs * 2, longestBackoffMs));
    });
  }

  #spawn(worker: WorkerProcess, args: readonly string[]): ChildProcess {
    const log = openSync(worker.logPath, "a", 0o600);
    const [program = "", ...before] = [...worker.enter, process.execPath];
    const child = spawn(program, [...before, this.#options.program, worker.configPath, ...args], {
      stdio: ["pipe", log, log],
      // A terminal's Ctrl-C reaches the whole foreground group; the order of stopping is this process's.
      detached: true,
    });
    closeSync(log);
    child.stdin?.on("error", () => undefined); // it ended: `exit` tells
    return child;
  }

  async #stopOne(worker: WorkerProcess, how: Ending): Promise<void> {
    const child = this.#running.get(worker.name);
    if (child !== undefined) {
      const ended = this.#endOf(child);
      if (how === "stopAll") child.kill("SIGTERM");
      else child.stdin?.end();
      if (await ended) return;
    }
    await this.#endOf(this.#spawn(worker, [how]));
  }

  /** Whether it ended in order, within the limit. */
  #endOf(child: ChildProcess): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(stopLimitMs, () => child.kill("SIGKILL"));
      const finish = (inOrder: boolean): void => {
        cancel();
        resolve(inOrder);
      };
      child.once("error", () => finish(false));
      child.once("exit", (code) => finish(code === 0));
    });
  }
}
