// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { FrameExchange } from "./frame-exchange.ts";
import { FrameBuilder, ProtocolError } from "./frames.ts";
import { type GuestConnectionError, GuestError } from "./guest-error.ts";
import type { FrameSink } from "./guest-process.ts";
import { decodeContent, encodeFetch, type FetchedFile, GuestFrame } from "./guest-protocol.ts";

/** One file that was asked for. Exactly one of the two is called. */
export interface Fetch {
  readonly path: string;
  done(file: FetchedFile): void;
  /** `GuestError` EFBIG: the file is to be read another way. Else as operations of a connection reject. */
  failed(error: Error): void;
}

const requestBytes = 1024;

/**
 * A connection on which small files are asked for without waiting for the answers to earlier requests: those of one turn
 * leave in one write, and their answers come together. Answers come in the order of the requests.
 */
export class FetchLane implements FrameSink {
  readonly #frames: FrameExchange;
  #waiting: Fetch[] = [];
  #requests: FrameBuilder | undefined;
  #answered = 0;
  #paused = false;

  /** Made by `GuestConnection.fetches` only. */
  constructor(frames: FrameExchange) {
    this.#frames = frames;
  }

  /** Requests that are not answered. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Requests ever answered. */
  get answered(): number {
    return this.#answered;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** The request leaves when what runs now has run. */
  add(fetch: Fetch): void {
    this.#waiting.push(fetch);
    if (this.#requests === undefined) {
      this.#requests = new FrameBuilder(requestBytes);
      queueMicrotask(() => this.#flush());
    }
    encodeFetch(this.#requests, fetch.path);
  }

  /** Those behind the one that is being answered, to be asked for elsewhere: their answers are dropped when they come. */
  giveUpQueued(): readonly Fetch[] {
    const [first, ...queued] = this.#waiting;
    if (first !== undefined) this.#waiting = [first, ...queued.map(({ path }) => dropped(path))];
    return queued;
  }

  /** Stops and restarts reading from the guest (back-pressure). */
  pause(): void {
    this.#paused = true;
    this.#frames.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#frames.resume();
  }

  /** Ends the use of the connection for fetches. Only while nothing waits. */
  release(): void {
    if (this.#waiting.length > 0) throw new TypeError("released while files are awaited");
    this.#frames.handBack();
  }

  onFrame(type: number, payload: Buffer): void {
    const fetch = this.#waiting.shift();
    if (fetch === undefined) throw new ProtocolError("unexpected frame");
    this.#answered += 1;
    if (type === GuestFrame.content) fetch.done(decodeContent(payload));
    else if (type === GuestFrame.error) fetch.failed(GuestError.decode(payload));
    else {
      this.#waiting.unshift(fetch); // told of the connection's end
      throw new ProtocolError("unexpected frame in FETCH");
    }
  }

  onClosed(error: GuestConnectionError): void {
    for (const fetch of this.#waiting.splice(0)) fetch.failed(error);
  }

  #flush(): void {
    const requests = this.#requests;
    this.#requests = undefined;
    if (requests !== undefined) this.#frames.writeFrames(requests);
  }
}

function dropped(path: string): Fetch {
  return { path, done: () => undefined, failed: () => undefined };
}
