// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AnswerSink } from "./answer-sink.ts";
import { endOfStream, envelope } from "./connect-envelope.ts";
import type { EnvdError } from "./envd-error.ts";
import type { MessageCodec } from "./message-codec.ts";

/** Beyond this much waiting for a reader that takes nothing, a stream is ended. */
export const streamQueueLimitBytes: number = 4 * 1024 * 1024;

/**
 * The answer of a streaming call. Messages are sent in order; while the reader is behind they wait in a queue, and
 * `blocked` tells the producer to stop. It ends with an end-of-stream envelope, or with a reset. The head (always 200)
 * leaves with the first message or error, so that until then the call can still be answered in another way.
 */
export class RpcStream {
  readonly codec: MessageCodec;
  readonly #sink: AnswerSink;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #blocked = false;
  #closing = false;
  #onDrain: (() => void) | undefined;

  constructor(sink: AnswerSink, codec: MessageCodec) {
    this.#sink = sink;
    this.codec = codec;
    sink.listenForDrain(() => this.#flush());
  }

  /** Whether the reader has not taken what it was sent. */
  get blocked(): boolean {
    return this.#blocked;
  }

  /** Whether nothing more can be sent. */
  get over(): boolean {
    return this.#closing || this.#sink.over;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** What has been sent and waits for room, and whether nothing follows it. */
  get waiting(): { readonly bytes: Buffer; readonly isLast: boolean } {
    return { bytes: Buffer.concat(this.#queue), isLast: this.#closing };
  }

  /** Called each time the reader has caught up after `blocked`. */
  listenForDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  onOver(listener: () => void): void {
    this.#sink.onOver(listener);
  }

  /** Sends one message that is already in its envelope. */
  send(framed: Buffer): void {
    if (this.over) return;
    if (!this.#sink.answered) this.#begin();
    if (this.#blocked) {
      this.#queue.push(framed);
      this.#queuedBytes += framed.length;
    } else if (!this.#sink.write(framed)) this.#blocked = true;
  }

  sendMessage(message: Uint8Array): void {
    this.send(envelope(message));
  }

  /** Ends the stream after everything sent. */
  end(): void {
    if (this.over) return;
    this.send(endOfStream(undefined));
    this.#close();
  }

  /** Ends the stream with an error now; what the reader has not taken is dropped. */
  fail(error: EnvdError): void {
    if (this.over) return;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#blocked = false;
    this.send(endOfStream(error));
    this.#close();
  }

  /** Breaks the transport: the guest is gone. */
  reset(reason: string): void {
    this.#closing = true;
    this.#sink.reset(reason);
  }

  #begin(): void {
    this.#sink.begin({ status: 200, headers: ["content-type", `application/connect+${this.codec}`] });
  }

  #close(): void {
    this.#closing = true;
    if (this.#queue.length === 0) this.#sink.end();
  }

  #flush(): void {
    this.#blocked = false;
    while (this.#queue.length > 0 && !this.#blocked) {
      const framed = this.#queue.shift();
      if (framed === undefined) break;
      this.#queuedBytes -= framed.length;
      if (!this.#sink.write(framed)) this.#blocked = true;
    }
    if (this.#queue.length > 0) return;
    if (this.#closing) this.#sink.end();
    else if (!this.#blocked) this.#onDrain?.();
  }
}
