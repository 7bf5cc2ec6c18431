// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { CallerGone, type RequestBody } from "./request-body.ts";

/** a request's body that outlives the exchanges which bring it: each byte is taken once, in order. */
export class ContinuedBody {
  #source: RequestBody | undefined;
  #takenBytes = 0;
  #skipBytes = 0;
  #ended = false;
  #abandoned = false;
  #wake: () => void = () => undefined;

  constructor(first: RequestBody | undefined) {
    this.#source = first;
  }

  /** Whether a body that begins at this offset leaves no gap. */
  reaches(offset: number): boolean {
    return offset <= this.#takenBytes;
  }

  /** Goes on with a body that begins at `offset`, which it `reaches`. */
  attach(body: RequestBody, offset: number): void {
    if (this.#ended) return body.discard();
    this.#skipBytes = this.#takenBytes - offset;
    this.#source = body;
    this.#wake();
  }

  /** The next chunk, or undefined at the end; waits while no exchange brings it. Rejects with `CallerGone`. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const source = await this.#current();
      const chunk = await this.#take(source);
      if (chunk === "cut") continue;
      if (chunk === undefined) {
        this.#ended = true;
        return undefined;
      }
      const fresh = chunk.subarray(this.#skipBytes);
      this.#skipBytes -= chunk.length - fresh.length;
      this.#takenBytes += fresh.length;
      if (fresh.length > 0) return fresh;
    }
  }

  /** No further exchange will come. */
  abandon(): void {
    this.#abandoned = true;
    this.#wake();
  }

  async #take(source: RequestBody): Promise<Buffer | undefined | "cut"> {
    try {
      const chunk = await source.next();
      return this.#source === source ? chunk : "cut"; // superseded meanwhile: the other one brings it again
    } catch (error) {
      if (!(error instanceof CallerGone)) throw error;
      if (this.#source === source) this.#source = undefined;
      return "cut";
    }
  }

  async #current(): Promise<RequestBody> {
    for (;;) {
      if (this.#abandoned) throw new CallerGone();
      if (this.#source !== undefined) return this.#source;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
