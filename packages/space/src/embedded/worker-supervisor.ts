// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Clock } from "@space/model";

const firstBackoffMs = 100;
const longestBackoffMs = 5_000;
const stopLimitMs = 20_000;

export interface WorkerProcess {
  readonly name: string;
  /** The worker's configuration file: its only argument. */
  readonly configPath: string;
  readonly logPath: string;
}

export interface SupervisorOptions {
  readonly program: string;
  readonly workers: readonly WorkerProcess[];
  /** Told each time that a worker ended which should run. */
  readonly onRestart: (name: string, how: string) => void;
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

  /** Asks each daemon to end everything it runs and waits for all; a daemon that does not is killed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#running.values()].map((child) => this.#stopOne(child)));
  }

  #launch(worker: WorkerProcess, backoffMs: number): void {
    const log = openSync(worker.logPath, "a", 0o600);
    const startedMs = this.#clock.monotonicMs();
    const child = spawn(process.execPath, [this.#options.program, worker.configPath], {
      stdio: ["pipe", log, log],
      // A terminal's Ctrl-C reaches the whole foreground group; the order of stopping is this process's.
      detached: true,
    });
    closeSync(log);
    child.stdin?.on("error", () => undefined); // it ended: `exit` tells
    this.#running.set(worker.name, child);
    child.once("error", () => this.#ended(worker, "cannot start", backoffMs));
    child.once("exit", (code, signal) => {
      const livedMs = this.#clock.monotonicMs() - startedMs;
      this.#ended(worker, signal ?? `code ${code}`, livedMs > longestBackoffMs ? firstBackoffMs : backoffMs);
    });
  }

  #ended(worker: WorkerProcess, how: string, backoffMs: number): void {
    this.#running.delete(worker.name);
    if (this.#stopping) return;
    this.#options.onRestart(worker.name, how);
    this.#clock.after(backoffMs, () => {
      if (!this.#stopping) this.#launch(worker, Math.min(backoffMs * 2, longestBackoffMs));
    });
  }

  #stopOne(child: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(stopLimitMs, () => child.kill("SIGKILL"));
      child.once("exit", () => {
        cancel();
        resolve();
      });
      child.kill("SIGTERM");
    });
  }
}
