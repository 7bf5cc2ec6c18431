// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import { GuestProcess, type ProcessExit } from "@space/spaced-guest";
import type { CarriedEnd, CarriedState } from "./carried-state.ts";
import { EnvdError } from "./envd-error.ts";
import { HostedProcess, type ProcessDescription, type ProcessOutcome } from "./hosted-process.ts";

/** Processes started here and still running, per sandbox. */
export const processLimit = 1_000;
/** What the descriptions of running processes may hold together. */
const descriptionLimitBytes = 64 * 1024 * 1024;
/** How long the end of a process can still be asked for. */
export const rememberedMs = 30_000;
const rememberedLimit = 10_000;

/** Names a process: by its pid in the guest, or by the tag it was started with. */
export type ProcessName =
  | { readonly kind: "pid"; readonly pid: number }
  | { readonly kind: "tag"; readonly tag: string };

interface EndedProcess {
  readonly pid: number;
  readonly tag: string | undefined;
  readonly exit: ProcessExit;
  readonly forget: () => void;
}

export type FoundProcess =
  | { readonly kind: "running"; readonly process: HostedProcess }
  | { readonly kind: "ended"; readonly pid: number; readonly exit: ProcessExit };

/** The processes of one sandbox that were started here. */
export class ProcessTable {
  readonly #clock: Clock;
  readonly #onPrivilegedEnd: () => void;
  readonly #running = new Map<number, HostedProcess>();
  readonly #ended = new Map<number, EndedProcess>();
  #count = 0;
  #descriptionBytes = 0;

  /** `onPrivilegedEnd` is called after each end of a process that ran as root. */
  constructor(clock: Clock, onPrivilegedEnd: () => void) {
    this.#clock = clock;
    this.#onPrivilegedEnd = onPrivilegedEnd;
  }

  /** The processes that run now, in the order of their start. */
  list(): readonly HostedProcess[] {
    return [...this.#running.values()];
  }

  /** Makes room for a process; it is in the table once `add`ed. Throws `resource_exhausted`. */
  reserve(description: ProcessDescription): HostedProcess {
    const bytes = descriptionBytes(description);
    if (this.#count >= processLimit || this.#descriptionBytes + bytes > descriptionLimitBytes) {
      throw new EnvdError("resource_exhausted", `the sandbox already runs ${this.#count} commands`);
    }
    this.#count += 1;
    this.#descriptionBytes += bytes;
    return new HostedProcess(description, this.#clock, (process, outcome) => this.#over(process, outcome));
  }

  /** The reserved process runs. One that ended with the same pid is forgotten. */
  add(process: HostedProcess, pid: number): void {
    this.#forget(pid);
    this.#running.set(pid, process);
  }

  /** Running, or ended a short while ago. Throws `not_found`. */
  find(name: ProcessName): FoundProcess {
    const process = this.#findRunning(name);
    if (process !== undefined) return { kind: "running", process };
    const ended =
      name.kind === "pid" ? this.#ended.get(name.pid) : last(this.#ended, ({ tag }) => tag === name.tag);
    if (ended !== undefined) return { kind: "ended", pid: ended.pid, exit: ended.exit };
    throw notFound(name);
  }

  /** Throws `not_found`, also for one that has ended. */
  findRunning(name: ProcessName): HostedProcess {
    const process = this.#findRunning(name);
    if (process === undefined) throw notFound(name);
    return process;
  }

  /** What waits for another connection, and what has ended a short while ago. */
  save(): {
    readonly running: readonly NonNullable<ReturnType<HostedProcess["save"]>>[];
    readonly ended: readonly CarriedEnd[];
  } {
    const running = this.list().flatMap((process) => process.save() ?? []);
    return { running, ended: [...this.#ended.values()].map(({ pid, tag, exit }) => ({ pid, tag, exit })) };
  }

  /** Those of a guest that was restored: they wait to be taken over. Throws `resource_exhausted`. */
  restore({ processes, ended }: Pick<CarriedState, "processes" | "ended">): void {
    for (const { description, link, closed, limitMs } of processes) {
      const process = this.reserve(description);
      process.restored(GuestProcess.restored(link, process.handlers));
      if (closed) process.input.close();
      if (limitMs !== null) process.limitLife(limitMs);
      this.add(process, link.pid);
    }
    for (const { pid, tag, exit } of ended) this.#remember(pid, tag, exit);
  }

  /** Ends every process and forgets the others. */
  clear(): void {
    for (const process of this.list()) process.abandon();
    for (const pid of [...this.#ended.keys()]) this.#forget(pid);
  }

  #findRunning(name: ProcessName): HostedProcess | undefined {
    if (name.kind === "pid") return this.#running.get(name.pid);
    return last(this.#running, ({ description }) => description.tag === name.tag);
  }

  #over(process: HostedProcess, outcome: ProcessOutcome): void {
    const { pid, description } = process;
    this.#count -= 1;
    this.#descriptionBytes -= descriptionBytes(description);
    if (this.#running.get(pid) === process) this.#running.delete(pid);
    if (outcome.kind === "ended") this.#remember(pid, description.tag, outcome.exit);
    if (description.privileged) this.#onPrivilegedEnd();
  }

  #remember(pid: number, tag: string | undefined, exit: ProcessExit): void {
    const forget = this.#clock.after(rememberedMs, () => this.#ended.delete(pid));
    this.#ended.set(pid, { pid, tag, exit, forget });
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > rememberedLimit && oldest !== undefined) this.#forget(oldest);
  }

  #forget(pid: number): void {
    this.#ended.get(pid)?.forget();
    this.#ended.delete(pid);
  }
}

function last<T>(map: ReadonlyMap<number, T>, matches: (value: T) => boolean): T | undefined {
  let found: T | undefined;
  for (const value of map.values()) if (matches(value)) found = value;
  return found;
}

function descriptionBytes({ cmd, args, envs }: ProcessDescription): number {
  let bytes = cmd.length;
  for (const text of args) bytes += text.length;
  for (const [name, text] of Object.entries(envs)) bytes += name.length + text.length;
  return bytes;
}

function notFound(name: ProcessName): EnvdError {
  const what = name.kind === "pid" ? `pid ${name.pid}` : `tag '${name.tag}'`;
  return new EnvdError("not_found", `process with ${what} not found`);
}
