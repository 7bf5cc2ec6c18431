// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AnswerHead, retainedBytes } from "@space/wire";
import type { AnswerSink } from "./answer-sink.ts";
import type { Exchange } from "./exchange.ts";
import { RetainedBytes, type SharedMemory } from "./retained-bytes.ts";

/** Kept for an answer that no exchange carries at present; then its producer waits. 1 MiB of output, in base64. */
export const unsentLimitBytes: number = 1536 * 1024;
const pieceBytes = 64 * 1024;

/** An answer as far as it has come. */
export interface SavedAnswer {
  readonly head: AnswerHead | undefined;
  /** Offset of the first byte kept, and of the first that no exchange has taken. */
  readonly start: number;
  readonly handed: number;
  readonly bytes: Uint8Array;
  readonly ended: boolean;
}

/** What an answer tells of itself. */
export interface AnswerWatcher {
  /** No exchange carries it; it waits for the next. */
  detached(): void;
  /** It goes on. */
  attached(): void;
  /** It can never go on: it was broken off, or its caller has given it up. */
  dead(): void;
}

/**
 * an answer that outlives the exchanges which carry it. What was sent last is kept, so that the next exchange goes
 * on at the very byte where the gateway stands. Its producer sees one answer.
 */
export class ContinuedAnswer implements AnswerSink {
  readonly #memory: SharedMemory;
  readonly #kept: RetainedBytes;
  readonly #watcher: AnswerWatcher;
  readonly #overListeners = new Set<() => void>();
  #drainListener: (() => void) | undefined;
  #head: AnswerHead | undefined;
  #exchange: Exchange | undefined;
  /** Offset of the next byte for the exchange. */
  #handed = 0;
  #congested = false;
  #state: "open" | "ended" | "dead" = "open";

  constructor(memory: SharedMemory, watcher: AnswerWatcher, start = 0) {
    this.#memory = memory;
    this.#kept = new RetainedBytes(memory, start);
    this.#watcher = watcher;
  }

  /** One that another bridge has begun: no exchange carries it yet. */
  static restored(memory: SharedMemory, watcher: AnswerWatcher, saved: SavedAnswer): ContinuedAnswer {
    const answer = new ContinuedAnswer(memory, watcher, saved.start);
    answer.#head = saved.head;
    answer.#handed = saved.handed;
    answer.#kept.append(Buffer.from(saved.bytes));
    if (saved.ended) answer.#finish("ended");
    return answer;
  }

  /** As it stands. What waits to be written to it comes behind these bytes. */
  save(): SavedAnswer {
    const { start, end } = this.#kept;
    const bytes = this.#kept.read(start, end - start);
    return { head: this.#head, start, handed: this.#handed, bytes, ended: this.#state === "ended" };
  }

  get answered(): boolean {
    return this.#head !== undefined;
  }

  get over(): boolean {
    return this.#state !== "open";
  }

  /** Whether the caller has given it up, or it was broken off. */
  get dead(): boolean {
    return this.#state === "dead";
  }

  /** The exchange that carries it now. */
  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  /** Whether it can go on after this many bytes. */
  reaches(offset: number): boolean {
    return this.#state !== "dead" && offset >= this.#kept.start && offset <= this.#kept.end;
  }

  /** Goes on after `offset`, which it `reaches`; the exchange that carried it before ends. */
  attach(exchange: Exchange, offset: number): void {
    const previous = this.#exchange;
    this.#exchange = exchange;
    previous?.reset("superseded");
    this.#handed = offset;
    this.#congested = false;
    exchange.listenForDrain(() => {
      this.#congested = false;
      this.#advance();
    });
    this.#watcher.attached();
    exchange.onOver(() => this.#exchangeOver(exchange));
    if (this.#head !== undefined) exchange.begin(this.#head);
    this.#advance();
  }

  begin(head: AnswerHead): void {
    if (this.over || this.#head !== undefined) return;
    this.#head = head;
    this.#exchange?.begin(head);
  }

  write(chunk: Buffer): boolean {
    if (this.over) return true;
    const direct = this.#exchange !== undefined && !this.#congested && this.#unsentBytes === 0;
    this.#kept.dropBefore(this.#handed - retainedBytes);
    // Without memory for more, less is kept of what an exchange took: a continuation may then be refused, never guessed at.
    if (direct && !this.#kept.makeRoom(chunk.length)) this.#kept.squeeze(chunk.length);
    this.#kept.append(chunk);
    if (direct) this.#hand(chunk);
    return this.#hasRoom;
  }

  end(): void {
    if (this.over) return;
    this.#finish("ended");
    this.#advance();
    if (this.#exchange === undefined) this.#watcher.detached();
  }

  reset(reason: string): void {
    if (this.dead) return;
    const exchange = this.#exchange;
    this.#die();
    exchange?.reset(reason);
  }

  /** Gives its exchange up, unharmed, and is dead. */
  release(): Exchange | undefined {
    const exchange = this.#exchange;
    if (!this.dead) this.#die();
    return exchange;
  }

  listenForDrain(listener: () => void): void {
    this.#drainListener = listener;
  }

  onOver(listener: () => void): void {
    if (this.over) listener();
    else this.#overListeners.add(listener);
  }

  get #unsentBytes(): number {
    return this.#kept.end - this.#handed;
  }

  get #hasRoom(): boolean {
    if (this.#exchange === undefined) {
      return this.#unsentBytes === 0 || (this.#unsentBytes < unsentLimitBytes && !this.#memory.exhausted);
    }
    return !this.#congested && this.#unsentBytes === 0;
  }

  #hand(chunk: Buffer): void {
    this.#handed += chunk.length;
    this.#congested = this.#exchange?.write(chunk) === false;
  }

  #advance(): void {
    while (this.#exchange !== undefined && !this.#congested && this.#unsentBytes > 0) {
      this.#hand(this.#kept.read(this.#handed, pieceBytes));
    }
    if (this.#state === "ended" && this.#unsentBytes === 0) this.#exchange?.end();
    else if (this.#state === "open" && this.#hasRoom) this.#drainListener?.();
  }

  #exchangeOver(exchange: Exchange): void {
    if (this.#exchange !== exchange) return;
    this.#exchange = undefined;
    this.#congested = false;
    if (exchange.cancelled) return this.#die();
    this.#watcher.detached();
    if (this.#state === "open" && this.#hasRoom) this.#drainListener?.();
  }

  #die(): void {
    this.#exchange = undefined;
    this.#finish("dead");
    this.#kept.release();
    this.#watcher.dead();
  }

  #finish(state: "ended" | "dead"): void {
    const wasOpen = this.#state === "open";
    this.#state = state;
    if (!wasOpen) return;
    this.#drainListener = undefined;
    for (const listener of [...this.#overListeners]) listener();
    this.#overListeners.clear();
  }
}
