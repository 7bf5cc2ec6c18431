// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UnsoundRun } from "./unsound.ts";

const readyLimitMs = 60_000;
const askLimitMs = 60_000;
const stopLimitMs = 30_000;
const logTailChars = 2_000;

export interface BenchProcessOptions {
  /** For messages and for its log file. */
  readonly name: string;
  /** The entry point, in this folder. */
  readonly entry: string;
  readonly config: unknown;
  /** The run's own folder. */
  readonly folder: string;
}

/**
 * A process of the benchmark's own. Messages go over the channel that it was started with, so nothing secret is in its
 * arguments; when this process dies, the channel's end tells it to stop.
 */
export class BenchProcess {
  readonly name: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #logPath: string;
  readonly #ended: Promise<string>;
  #stopping = false;
  #how: string | undefined;

  /** Starts it and resolves with what it says when it is ready. Throws {@link UnsoundRun}. */
  static async start(options: BenchProcessOptions): Promise<{ process: BenchProcess; ready: unknown }> {
    const started = new BenchProcess(options);
    try {
      return { process: started, ready: await started.#exchange(options.config, readyLimitMs) };
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  private constructor({ name, entry, folder }: BenchProcessOptions) {
    this.name = name;
    this.#logPath = join(folder, `${name}.log`);
    const log = openSync(this.#logPath, "a", 0o600);
    this.#child = spawn(process.execPath, [join(import.meta.dirname, entry)], {
      stdio: ["ignore", log, log, "ipc"],
      serialization: "advanced",
      // A terminal's Ctrl-C reaches the whole foreground group; the order of stopping is this process's.
      detached: true,
    });
    closeSync(log);
    this.pid = this.#child.pid ?? 0;
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#how = how;
        resolve(how);
      };
      this.#child.once("error", (error) => end(error.message));
      this.#child.once("exit", (code, signal) => end(signal ?? `code ${code}`));
    });
  }

  /** Sends one request and resolves with the answer. One at a time. */
  ask(request: unknown): Promise<unknown> {
    return this.#exchange(request, askLimitMs);
  }

  /** Throws {@link UnsoundRun} when it has ended by itself. */
  mustRun(): void {
    if (this.#how !== undefined && !this.#stopping) throw this.#died(this.#how);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#how !== undefined) return;
    const late = setTimeout(() => this.#child.kill("SIGKILL"), stopLimitMs);
    if (this.#child.connected) this.#child.disconnect();
    await this.#ended;
    clearTimeout(late);
  }

  async #exchange(request: unknown, limitMs: number): Promise<unknown> {
    const late = Promise.withResolvers<never>();
    const answer = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => late.reject(new UnsoundRun(`${this.name} did not answer`)), limitMs);
    const died = this.#ended.then((how) => Promise.reject(this.#died(how)));
    this.#child.once("message", answer.resolve);
    try {
      this.#child.send({ request });
      const message = await Promise.race([answer.promise, late.promise, died]);
      return readAnswer(this.name, message);
    } finally {
      clearTimeout(timer);
      this.#child.off("message", answer.resolve);
    }
  }

  #died(how: string): UnsoundRun {
    const log = readFileSync(this.#logPath, "utf8").slice(-logTailChars).trim();
    return new UnsoundRun(`${this.name} ended (${how})${log === "" ? "" : `:\n${log}`}`);
  }
}

function readAnswer(name: string, message: unknown): unknown {
  if (typeof message === "object" && message !== null) {
    if ("answer" in message) return message.answer;
    if ("failure" in message) throw new UnsoundRun(`${name}: ${String(message.failure)}`);
  }
  throw new UnsoundRun(`${name} answered out of form`);
}
