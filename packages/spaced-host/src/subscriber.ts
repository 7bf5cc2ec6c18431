// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { ContinuedStream } from "./continued-streams.ts";
import { EnvdError } from "./envd-error.ts";
import { keepaliveEvent } from "./process-events.ts";
import { type RpcStream, streamQueueLimitBytes } from "./rpc-stream.ts";

/** Node's timers take no longer delays: a deadline beyond is none. */
const timerLimitMs = 2_147_483_647;

export interface SubscriberOptions {
  readonly keepaliveMs: number;
  /** Ends the stream with `deadline_exceeded`; undefined: no limit. */
  readonly deadlineMs: number | undefined;
  /** What shows an idle reader that the stream lives. */
  readonly keepalive?: Buffer;
  /** the stream that goes on under its name. */
  readonly named?: ContinuedStream | undefined;
}

/** One reader of a process's events. */
export class Subscriber {
  readonly stream: RpcStream;
  readonly named: ContinuedStream | undefined;
  readonly #deadlineAtMs: number | undefined;
  readonly #clock: Clock;
  readonly #keepaliveMs: number;
  readonly #keepalive: Buffer;
  #lastSentMs: number;
  #blockedSinceMs = 0;
  #cancelKeepalive: () => void;
  readonly #cancelDeadline: () => void = () => undefined;

  constructor(stream: RpcStream, options: SubscriberOptions, clock: Clock) {
    this.stream = stream;
    this.named = options.named;
    this.#clock = clock;
    this.#keepaliveMs = options.keepaliveMs;
    this.#keepalive = options.keepalive ?? keepaliveEvent(stream.codec);
    this.#lastSentMs = clock.monotonicMs();
    this.#cancelKeepalive = this.#armKeepalive(options.keepaliveMs);
    if (options.deadlineMs !== undefined && options.deadlineMs <= timerLimitMs) {
      this.#deadlineAtMs = clock.monotonicMs() + options.deadlineMs;
      this.#cancelDeadline = clock.after(options.deadlineMs, () => {
        stream.fail(new EnvdError("deadline_exceeded", "the request's time limit has passed"));
      });
    }
    stream.onOver(() => {
      this.#cancelKeepalive();
      this.#cancelDeadline();
    });
  }

  /** What it takes to make another like it: the time left to its deadline. */
  get times(): { readonly keepaliveMs: number; readonly deadlineMs: number | null } {
    const at = this.#deadlineAtMs;
    const deadlineMs = at === undefined ? null : Math.max(0, at - this.#clock.monotonicMs());
    return { keepaliveMs: this.#keepaliveMs, deadlineMs };
  }

  /** How long the reader has taken nothing; 0 when it is not behind. */
  get blockedMs(): number {
    return this.stream.blocked ? this.#clock.monotonicMs() - this.#blockedSinceMs : 0;
  }

  /** Sends an event. A reader that is too far behind is ended with `resource_exhausted`. */
  push(framed: Buffer): void {
    const wasBlocked = this.stream.blocked;
    this.stream.send(framed);
    this.#lastSentMs = this.#clock.monotonicMs();
    if (this.stream.blocked && !wasBlocked) this.#blockedSinceMs = this.#lastSentMs;
    if (this.stream.queuedBytes > streamQueueLimitBytes) this.cut();
  }

  /** Ends a reader that holds up others. */
  cut(): void {
    this.stream.fail(new EnvdError("resource_exhausted", "the output was not read fast enough"));
  }

  /** Checks at the time a keepalive would be due, and only then, whether data has been sent meanwhile. */
  #armKeepalive(delayMs: number): () => void {
    return this.#clock.after(delayMs, () => {
      if (this.stream.over) return;
      const idleMs = this.#clock.monotonicMs() - this.#lastSentMs;
      if (idleMs < this.#keepaliveMs) {
        this.#cancelKeepalive = this.#armKeepalive(this.#keepaliveMs - idleMs);
        return;
      }
      if (!this.stream.blocked) this.push(this.#keepalive);
      this.#cancelKeepalive = this.#armKeepalive(this.#keepaliveMs);
    });
  }
}
