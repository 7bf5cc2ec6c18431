// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import { continuationWaitMs, type StreamPosition } from "@space/wire";
import { type AnswerWatcher, ContinuedAnswer, type SavedAnswer } from "./continued-answer.ts";
import { ContinuedBody } from "./continued-body.ts";
import { EnvdError } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";
import type { MessageCodec } from "./message-codec.ts";
import type { RequestBody } from "./request-body.ts";
import type { SharedMemory } from "./retained-bytes.ts";
import type { RpcStream } from "./rpc-stream.ts";
import type { RunningTime } from "./running-time.ts";

/** Streams of one sandbox that go on, those that wait for a continuation included. */
const openLimit = 2_000;
/** Answers that have ended, kept for a gateway that has not received all of it. */
const endedLimit = 256;
/** What one sandbox's answers may keep together. */
const memoryLimitBytes = 64 * 1024 * 1024;
const sweepMs = 5_000;
const forgotten = "not continued";

/** What a stream is of: only its own kind continues it. */
export type StreamKind = "process" | "watch" | "input";

export interface StreamName {
  readonly key: string;
  readonly kind: StreamKind;
  readonly codec: MessageCodec;
}

/** One named exchange: its answer, and for input its body. */
export class ContinuedStream {
  readonly kind: StreamKind;
  readonly answer: ContinuedAnswer;
  readonly body: ContinuedBody;
  readonly codec: MessageCodec;
  key: string;
  /** What writes its answer. */
  rpc: RpcStream | undefined;

  constructor(
    { key, kind, codec }: StreamName,
    parts: { readonly answer: ContinuedAnswer; readonly body: ContinuedBody },
  ) {
    this.kind = kind;
    this.codec = codec;
    this.key = key;
    this.answer = parts.answer;
    this.body = parts.body;
  }
}

/** the streams of one activation that outlive their exchanges, by the names that the gateway gave them. */
export class ContinuedStreams {
  readonly #clock: Clock;
  readonly #time: RunningTime;
  readonly #streams = new Map<string, ContinuedStream>();
  /** Since when nobody carries it, in that order: those that go on, and those that have ended. */
  readonly #waiting = new Map<ContinuedStream, number>();
  readonly #ended = new Map<ContinuedStream, number>();
  readonly #memory = new Ledger(memoryLimitBytes);
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock, time: RunningTime) {
    this.#clock = clock;
    this.#time = time;
  }

  get size(): number {
    return this.#streams.size;
  }

  find(key: string): ContinuedStream | undefined {
    return this.#streams.get(key);
  }

  /** Begins a stream under a new key, carried by this exchange. Throws `resource_exhausted`. */
  open(name: StreamName, exchange: Exchange): ContinuedStream {
    if (this.#streams.size - this.#ended.size >= openLimit) {
      throw new EnvdError("resource_exhausted", "too many streams are open in this sandbox");
    }
    const stream = this.#begin(name, exchange.body);
    stream.answer.attach(exchange, 0);
    return stream;
  }

  /** One that another bridge has begun waits for its continuation. */
  restore(name: StreamName, saved: SavedAnswer): ContinuedStream {
    const stream = this.#begin(name, undefined, saved);
    this.#wait(stream);
    return stream;
  }

  list(): Iterable<ContinuedStream> {
    return this.#streams.values();
  }

  /** Goes on with a stream on another exchange. False: it cannot, byte for byte. */
  continue(stream: ContinuedStream, exchange: Exchange, position: Partial<StreamPosition>): boolean {
    const { answerOffset = 0, bodyOffset = 0 } = position;
    const { answer, body, kind } = stream;
    if (!answer.reaches(answerOffset)) return false;
    if (kind === "input" && !body.reaches(bodyOffset)) return false;
    if (kind === "input") body.attach(exchange.body, bodyOffset);
    else exchange.body.discard();
    answer.attach(exchange, answerOffset);
    return true;
  }

  /** From now on it goes on under another name only. */
  rename(stream: ContinuedStream, key: string): void {
    this.#streams.delete(stream.key);
    stream.key = key;
    this.#streams.set(key, stream);
  }

  /** Breaks every stream off. */
  close(reason: string): void {
    for (const { answer } of [...this.#streams.values()]) answer.reset(reason);
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #begin(name: StreamName, source: RequestBody | undefined, saved?: SavedAnswer): ContinuedStream {
    const body = new ContinuedBody(source);
    const watcher: AnswerWatcher = {
      detached: () => this.#wait(stream),
      attached: () => this.#carried(stream),
      dead: () => {
        body.abandon();
        this.#carried(stream);
        if (this.#streams.get(stream.key) === stream) this.#streams.delete(stream.key);
      },
    };
    const answer =
      saved === undefined
        ? new ContinuedAnswer(this.#memory, watcher)
        : ContinuedAnswer.restored(this.#memory, watcher, saved);
    const stream = new ContinuedStream(name, { answer, body });
    this.#streams.set(name.key, stream);
    return stream;
  }

  #carried(stream: ContinuedStream): void {
    this.#waiting.delete(stream);
    this.#ended.delete(stream);
  }

  #wait(stream: ContinuedStream): void {
    this.#carried(stream);
    (stream.answer.over ? this.#ended : this.#waiting).set(stream, this.#time.nowMs());
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > endedLimit) oldest?.answer.reset(forgotten);
    this.#cancelSweep ??= this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    const nowMs = this.#time.nowMs();
    for (const since of [this.#waiting, this.#ended]) {
      for (const [{ answer }, sinceMs] of since) {
        if (nowMs - sinceMs >= continuationWaitMs) answer.reset(forgotten);
      }
    }
    const isEmpty = this.#waiting.size + this.#ended.size === 0;
    this.#cancelSweep = isEmpty ? undefined : this.#clock.after(sweepMs, () => this.#sweep());
  }
}

class Ledger implements SharedMemory {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get exhausted(): boolean {
    return this.#usedBytes >= this.#limitBytes;
  }

  tryTake(bytes: number): boolean {
    if (this.#usedBytes + bytes > this.#limitBytes) return false;
    this.#usedBytes += bytes;
    return true;
  }

  overdraw(bytes: number): void {
    this.#usedBytes += bytes;
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}
