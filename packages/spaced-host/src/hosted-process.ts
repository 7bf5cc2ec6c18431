// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { GuestProcess, ProcessExit, ProcessHandlers } from "@space/spaced-guest";
import type { CarriedDescription, CarriedProcess } from "./carried-state.ts";
import { EnvdError } from "./envd-error.ts";
import type { MessageCodec } from "./message-codec.ts";
import { dataEvent, endEvent, type OutputKind, startEvent } from "./process-events.ts";
import { type InputTarget, ProcessInputQueue } from "./process-input.ts";
import type { Subscriber } from "./subscriber.ts";

/** A reader that takes nothing for this long while others could go on is ended. */
export const stallLimitMs = 30_000;
/** Readers of one process. */
const subscriberLimit = 32;
const sigkill = 9;

/** What a process was started with, as `List` shows it. */
export type ProcessDescription = CarriedDescription;

/** How a process is over: it ended, or its guest is gone and nobody knows. */
export type ProcessOutcome =
  | { readonly kind: "ended"; readonly exit: ProcessExit }
  | { readonly kind: "lost" };

type State =
  /** The guest has not said STARTED, or nobody has taken note of it: events wait. */
  | { readonly kind: "starting"; readonly early: (() => void)[] }
  | { readonly kind: "running"; readonly process: GuestProcess }
  /** Its connection ended with a rekey and it has not been taken over yet. */
  | { readonly kind: "detached"; readonly process: GuestProcess }
  | ProcessOutcome;

/**
 * A process in the guest and its readers. All readers get the same events; the slowest sets the pace, back to the
 * process itself, unless it takes nothing at all while others wait: then it is ended. Output that nobody reads is
 * dropped. The process lives on without readers.
 */
export class HostedProcess {
  readonly description: ProcessDescription;
  readonly handlers: ProcessHandlers;
  readonly input: ProcessInputQueue = new ProcessInputQueue(() => this.#inputTarget);
  readonly #clock: Clock;
  readonly #onOver: (process: HostedProcess, outcome: ProcessOutcome) => void;
  readonly #subscribers = new Set<Subscriber>();
  readonly #endWaiters = new Set<() => void>();
  readonly #overListeners: ((outcome: ProcessOutcome) => void)[] = [];
  #state: State = { kind: "starting", early: [] };
  #pid = 0;
  #paused = false;
  /** Read on whatever the readers do: the end must be seen. */
  #draining = false;
  #expectingRekey = false;
  #cancelStallTimer: (() => void) | undefined;
  #lifeEndsAtMs: number | undefined;

  constructor(
    description: ProcessDescription,
    clock: Clock,
    onOver: (process: HostedProcess, outcome: ProcessOutcome) => void,
  ) {
    this.description = description;
    this.#clock = clock;
    this.#onOver = onOver;
    this.handlers = {
      onStdout: (chunk) => this.#whenStarted(() => this.#output("stdout", chunk)),
      onStderr: (chunk) => this.#whenStarted(() => this.#output("stderr", chunk)),
      onPty: (chunk) => this.#whenStarted(() => this.#output("pty", chunk)),
      onStdinDrain: () => this.input.resume(),
      onExit: (exit) => this.#whenStarted(() => this.#finish({ kind: "ended", exit })),
      onLost: () => this.#whenStarted(() => this.#lost()),
    };
  }

  get pid(): number {
    return this.#pid;
  }

  /** The guest runs it (anew, after a rekey). The first reader gets everything, the events that came meanwhile too. */
  started(process: GuestProcess, first?: Subscriber): void {
    if (this.#over) return;
    const early = this.#state.kind === "starting" ? this.#state.early : [];
    this.#pid = process.pid;
    this.#state = { kind: "running", process };
    this.#expectingRekey = false;
    this.#draining = false;
    this.#paused = false;
    if (first !== undefined) this.subscribe(first);
    for (const event of early) event();
    this.input.resume();
    if (this.#lifeEndsAtMs !== undefined && this.#lifeEndsAtMs <= this.#clock.monotonicMs())
      process.signal(sigkill); // that came while nobody could tell it
  }

  /** It runs in a guest that was restored: it waits there to be taken over. Not with the first reader, who has its pid. */
  restored(process: GuestProcess): void {
    this.#pid = process.pid;
    this.#state = { kind: "detached", process };
  }

  /** It is killed when so much time has passed, whether anybody still reads or not. */
  limitLife(limitMs: number): void {
    this.#lifeEndsAtMs = this.#clock.monotonicMs() + limitMs;
    this.onceOver(this.#clock.after(limitMs, () => this.signal(sigkill)));
  }

  /** As it waits for another connection; undefined when it does not. */
  save(): { readonly process: CarriedProcess; readonly readers: readonly Subscriber[] } | undefined {
    const { detached } = this;
    if (detached === undefined) return undefined;
    const ends = this.#lifeEndsAtMs;
    const limitMs = ends === undefined ? null : Math.max(0, ends - this.#clock.monotonicMs());
    const process: CarriedProcess = {
      description: this.description,
      link: detached.save(),
      closed: this.input.closed,
      limitMs,
    };
    return { process, readers: [...this.#subscribers] };
  }

  /** Adds a reader; it is told the pid and then everything from now on. Throws `resource_exhausted`. */
  subscribe(subscriber: Subscriber): void {
    if (this.#subscribers.size >= subscriberLimit) {
      throw new EnvdError("resource_exhausted", "the process has too many readers");
    }
    this.resubscribe(subscriber);
    subscriber.push(startEvent(subscriber.stream.codec, this.#pid));
  }

  /** As {@link subscribe}, for one that was told before. */
  resubscribe(subscriber: Subscriber): void {
    const { stream } = subscriber;
    this.#subscribers.add(subscriber);
    stream.listenForDrain(() => this.#updateFlow());
    stream.onOver(() => {
      this.#subscribers.delete(subscriber);
      this.#updateFlow();
    });
  }

  /** Calls back when the process is over; at once when it is. */
  onceOver(listener: (outcome: ProcessOutcome) => void): void {
    const state = this.#state;
    if (state.kind === "ended" || state.kind === "lost") listener(state);
    else this.#overListeners.push(listener);
  }

  signal(signal: number): void {
    this.#running?.signal(signal);
  }

  resize(cols: number, rows: number): void {
    this.#running?.resize(cols, rows);
  }

  /** Kills it and resolves when it is gone and reaped, or its guest is lost. */
  kill(): Promise<void> {
    const process = this.#running;
    if (process === undefined) return Promise.resolve();
    this.#draining = true;
    this.#updateFlow();
    process.signal(sigkill);
    return new Promise((resolve) => this.#endWaiters.add(resolve));
  }

  /** A rekey is about to end its connection: that is no loss. Resolves when it has, or when the process is over. */
  expectRekey(): Promise<void> {
    if (this.#running === undefined) return Promise.resolve();
    this.#expectingRekey = true;
    this.#draining = true;
    this.#updateFlow();
    return new Promise((resolve) => this.#endWaiters.add(resolve));
  }

  /** What another connection takes over, after a rekey; undefined when it is over. */
  get detached(): GuestProcess | undefined {
    return this.#state.kind === "detached" ? this.#state.process : undefined;
  }

  /** Closes its connection: the guest kills it. */
  abandon(): void {
    this.#expectingRekey = false;
    const process = this.#running;
    if (process !== undefined) process.destroy();
    this.#finish({ kind: "lost" });
  }

  get #over(): boolean {
    return this.#state.kind === "ended" || this.#state.kind === "lost";
  }

  get #running(): GuestProcess | undefined {
    return this.#state.kind === "running" ? this.#state.process : undefined;
  }

  get #inputTarget(): InputTarget {
    return this.#state.kind === "detached" ? "waiting" : this.#running;
  }

  #whenStarted(event: () => void): void {
    if (this.#state.kind === "starting") this.#state.early.push(event);
    else event();
  }

  #output(kind: OutputKind, chunk: Buffer): void {
    const encoded: Partial<Record<MessageCodec, Buffer>> = {};
    for (const subscriber of this.#subscribers) {
      const { codec } = subscriber.stream;
      const framed = encoded[codec] ?? dataEvent(codec, kind, chunk);
      encoded[codec] = framed;
      subscriber.push(framed);
    }
    this.#updateFlow();
  }

  #updateFlow(): void {
    const blocked = [...this.#subscribers].filter(({ stream }) => stream.blocked);
    const pause = blocked.length > 0 && !this.#draining;
    if (!pause || blocked.length === this.#subscribers.size) this.#disarmStallTimer();
    else this.#armStallTimer(stallLimitMs - Math.max(...blocked.map(({ blockedMs }) => blockedMs)));
    if (pause === this.#paused) return;
    this.#paused = pause;
    if (pause) this.#running?.pause();
    else this.#running?.resume();
  }

  #armStallTimer(delayMs: number): void {
    this.#cancelStallTimer ??= this.#clock.after(Math.max(0, delayMs), () => {
      this.#cancelStallTimer = undefined;
      for (const subscriber of this.#subscribers) if (subscriber.blockedMs >= stallLimitMs) subscriber.cut();
      this.#updateFlow();
    });
  }

  #disarmStallTimer(): void {
    this.#cancelStallTimer?.();
    this.#cancelStallTimer = undefined;
  }

  #lost(): void {
    if (!this.#expectingRekey) return this.#finish({ kind: "lost" });
    const process = this.#running;
    if (process === undefined) return this.#finish({ kind: "lost" });
    this.#state = { kind: "detached", process };
    this.#wakeWaiters();
  }

  #wakeWaiters(): void {
    this.input.resume();
    for (const resolve of this.#endWaiters) resolve();
    this.#endWaiters.clear();
  }

  #finish(outcome: ProcessOutcome): void {
    if (this.#over) return;
    this.#state = outcome;
    this.#disarmStallTimer();
    const subscribers = [...this.#subscribers];
    this.#subscribers.clear();
    for (const { stream } of subscribers) {
      if (outcome.kind === "lost") stream.reset("guest lost");
      else {
        stream.send(endEvent(stream.codec, outcome.exit));
        stream.end();
      }
    }
    this.#wakeWaiters();
    for (const listener of this.#overListeners.splice(0)) listener(outcome);
    this.#onOver(this, outcome);
  }
}
