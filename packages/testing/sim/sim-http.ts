// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { IncomingMessage, ServerResponse } from "node:http";

type Listener = (...args: never[]) => void;

/** What came back for one request. */
export interface HttpOutcome {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  /** Broken off: no answer, or not all of it. */
  readonly broken: boolean;
}

/** The events of a node object, without the rest of it. */
class Events {
  /** Side by side: there are few, and many objects that have some. */
  readonly #events: string[] = [];
  readonly #listeners: Listener[] = [];

  on(event: string, listener: Listener): this {
    this.#events.push(event);
    this.#listeners.push(listener);
    return this;
  }

  once(event: string, listener: Listener): this {
    return this.on(event, listener);
  }

  emit(event: string, ...args: unknown[]): void {
    for (let at = 0; at < this.#events.length; at += 1) {
      if (this.#events[at] === event) this.#listeners[at]?.(...(args as never[])); // cast: as node calls it
    }
  }
}

/** A server to which the gateway attaches itself; requests are put into it. */
export class SimServer extends Events {}

export interface SimRequestParts {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer | undefined;
}

/** No body comes in smaller pieces, but for its last. */
const smallestPiece = 25;

/** A request as node's HTTP server gives it. It counts as an `IncomingMessage`, and has the part of it that a gateway uses. */
export class SimRequest extends Events {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly socket = { destroy: (): void => undefined };
  complete = false;
  #body: Buffer | undefined;
  #flows = true;

  constructor({ method, url, rawHeaders, body }: SimRequestParts) {
    super();
    this.method = method;
    this.url = url;
    this.rawHeaders = rawHeaders;
    this.#body = body;
  }

  override on(event: string, listener: Listener): this {
    super.on(event, listener);
    if (event === "end") queueMicrotask(() => this.#deliver());
    return this;
  }

  pause(): void {
    this.#flows = false;
  }

  resume(): void {
    this.#flows = true;
    queueMicrotask(() => this.#deliver());
  }

  /** Half of what is left of the body at a time, so that it can be stopped in the middle. */
  #deliver(): void {
    while (this.#flows && this.#body !== undefined) {
      const piece = this.#body.subarray(0, Math.max(smallestPiece, Math.ceil(this.#body.length / 2)));
      this.#body = piece.length === this.#body.length ? undefined : this.#body.subarray(piece.length);
      this.emit("data", piece);
    }
    if (!this.#flows || this.complete || this.#body !== undefined) return;
    this.complete = true;
    this.emit("end");
  }
}

/** The response to a {@link SimRequest}. Tells its pieces as they leave. */
export class SimResponse extends Events {
  readonly socket = { destroy: (): void => this.#finish(true) };
  readonly req = { socket: { destroy: (): void => undefined } };
  writableEnded = false;
  destroyed = false;
  #status = 0;
  #headers: readonly string[] = [];
  readonly #body: string[] = [];
  readonly #onPiece: (text: string) => void;
  readonly #onOutcome: (outcome: HttpOutcome) => void;

  constructor(told: {
    readonly onPiece: (text: string) => void;
    readonly onOutcome: (outcome: HttpOutcome) => void;
  }) {
    super();
    this.#onPiece = told.onPiece;
    this.#onOutcome = told.onOutcome;
  }

  writeHead(status: number, headers: readonly string[]): void {
    this.#status = status;
    this.#headers = headers;
  }

  flushHeaders(): void {
    // The head is known already.
  }

  write(chunk: Buffer): boolean {
    const text = chunk.toString("latin1");
    this.#body.push(text);
    this.#onPiece(text);
    return true;
  }

  end(body?: Buffer | string): void {
    if (this.writableEnded) return;
    if (body !== undefined) this.#body.push(body.toString());
    this.writableEnded = true;
    this.#finish(false);
  }

  /** The caller has gone. */
  abandon(): void {
    if (this.destroyed || this.writableEnded) return;
    this.destroyed = true;
    this.emit("close");
  }

  #finish(broken: boolean): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#onOutcome({
      status: this.#status,
      headers: this.#headers,
      body: this.#body.join(""),
      broken: broken || this.#status === 0,
    });
    queueMicrotask(() => this.emit("close")); // as node does: whoever ended it has returned by then
  }
}

// The gateway tells node's own requests by their class.
Object.setPrototypeOf(Object.getPrototypeOf(SimRequest.prototype), IncomingMessage.prototype);
const responseEvents: object = Object.create(ServerResponse.prototype);
Object.defineProperties(responseEvents, Object.getOwnPropertyDescriptors(Events.prototype));
Object.setPrototypeOf(SimResponse.prototype, responseEvents);
