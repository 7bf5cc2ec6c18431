// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AnswerHead, type HostOperationHead, resetReason, type StreamHandlers } from "@space/wire";
import type { AnswerSink } from "./answer-sink.ts";
import type { OperationStream } from "./lease-gate.ts";
import { CallerGone, RequestBody } from "./request-body.ts";

/**
 * One operation: the caller's head and body on one side, the answer on the other. The answer is a head, then bytes with
 * back-pressure, then the end; or the whole is reset, which the caller sees as a broken transport. Calls after the end
 * do nothing.
 */
export class Exchange implements StreamHandlers, AnswerSink {
  readonly head: HostOperationHead;
  readonly body: RequestBody;
  readonly #stream: OperationStream;
  readonly #endListeners = new Set<() => void>();
  #drainListener: (() => void) | undefined;
  #answered = false;
  #over = false;
  #gone = false;
  #cancelled = false;

  constructor(stream: OperationStream, head: HostOperationHead) {
    this.#stream = stream;
    this.head = head;
    this.body = new RequestBody(
      (bytes) => stream.consumed(bytes),
      () => this.reset("body refused"),
    );
  }

  /** Whether the answer's head has been sent. */
  get answered(): boolean {
    return this.#answered;
  }

  /** Whether the answer is complete, or the exchange was reset by either side. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether the caller (or his link) has gone before the answer was complete. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether the caller himself gave the operation up: nothing of it goes on. */
  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Sends the whole answer. */
  answer(status: number, headers: readonly string[], body?: Buffer): void {
    if (body === undefined || body.length === 0) {
      this.#sendHead({ status, headers }, true);
      return;
    }
    this.#sendHead({ status, headers }, false);
    this.write(body);
    this.end();
  }

  /** Sends the head; `write` and `end` follow. */
  begin(head: AnswerHead): void {
    this.#sendHead(head, false);
  }

  /** Sends bytes of the answer. False: wait for `onDrain` or `drained`; what was given is sent all the same. */
  write(chunk: Buffer): boolean {
    return this.#over || this.#stream.send(chunk);
  }

  /** Ends the answer; the rest of the request's body is dropped. */
  end(): void {
    if (this.#over) return;
    this.#stream.end();
    this.#finish();
  }

  /** Ends the answer's direction only: the body goes on until `end`. */
  endSending(): void {
    if (!this.#over) this.#stream.end();
  }

  /** Breaks both directions. */
  reset(reason: string): void {
    if (this.#over && this.#stream.over) return;
    this.#stream.reset(reason);
    this.body.abort();
    this.#finish();
  }

  /** Sets the one listener for room after `write` returned false. */
  listenForDrain(listener: () => void): void {
    this.#drainListener = listener;
  }

  /** Resolves when there is room again; rejects with `CallerGone`. Replaces the drain listener. */
  drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#endListeners.delete(settle);
        this.#drainListener = undefined;
        if (this.#gone) reject(new CallerGone());
        else resolve();
      };
      if (this.#over) return settle();
      this.#drainListener = settle;
      this.#endListeners.add(settle);
    });
  }

  /** Calls back once, when the exchange is over for whatever reason; at once when it is. Returns how to stop listening. */
  onOver(listener: () => void): () => void {
    if (this.#over) listener();
    else this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  onData(chunk: Buffer): void {
    this.body.push(chunk);
  }

  onEnd(): void {
    this.body.end();
  }

  onReset(reason: string): void {
    this.#gone = !this.#over;
    this.#cancelled = this.#gone && reason === resetReason.cancelled;
    this.body.abort();
    this.#finish();
  }

  onDrain(): void {
    this.#drainListener?.();
  }

  #sendHead(head: AnswerHead, end: boolean): void {
    if (this.#over) return;
    this.#answered = true;
    this.#stream.sendHead(JSON.stringify(head), end);
    if (end) this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#drainListener = undefined;
    this.body.discard();
    for (const listener of [...this.#endListeners]) listener();
    this.#endListeners.clear();
  }
}
