// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Readable } from "node:stream";
import type { Clock } from "@space/model";
import { type LinkStream, retainedBytes } from "@space/wire";
import type { GatewayLimits } from "./limits.ts";

/** What a body tells its operation. */
export interface BodyListener {
  /** The head may go: the body is complete in memory, or it is long, or it did not come at once. */
  bodyReady(): void;
  /** It has grown past the limit; nothing more is read. */
  bodyTooLarge(): void;
}

/** Where a body comes from. */
export interface BodySource {
  readonly stream: Readable;
  /** Length announced; undefined when unknown. */
  readonly announcedBytes: number | undefined;
  /** Told once, before the first byte is read: the place to answer `Expect: 100-continue`. */
  wanted(): void;
  /** Whether the caller broke off: an end that comes with that is not the body's end. */
  cut(): boolean;
}

export interface RequestBodyPorts {
  readonly limits: GatewayLimits;
  readonly clock: Clock;
}

/**
 * The body of one request on its way to a worker. R-27: up to the limit it is kept in memory, so that a refused request
 * can be sent again whole; a longer one is held back at the source until the worker has admitted the operation.
 */
export class RequestBody {
  readonly #source: BodySource | undefined;
  readonly #limits: GatewayLimits;
  readonly #clock: Clock;
  #listener: BodyListener | undefined;
  #sink: LinkStream | undefined;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** the last of what was passed on, where it may have to be sent again. */
  #retained: Buffer[] = [];
  #retainedBytes = 0;
  #retains = false;
  #seenBytes = 0;
  #ended: boolean;
  #ready = false;
  #reading = false;
  #discarding = false;
  #cancelWait: (() => void) | undefined;

  /** `source` undefined: the request has no body. */
  constructor(source: BodySource | undefined, ports: RequestBodyPorts) {
    this.#source = source;
    this.#limits = ports.limits;
    this.#clock = ports.clock;
    this.#ended = source === undefined;
  }

  /** Whether all of it has been read from the caller. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether nothing of it remains to be read, and nothing is kept. */
  get empty(): boolean {
    return this.#ended && this.#keptBytes === 0;
  }

  /** whether the head must be admitted before any of it is sent. */
  get long(): boolean {
    return !this.#ended || this.#keptBytes > this.#limits.bufferedBodyBytes;
  }

  /** Bytes held in memory for it now. */
  get keptBytes(): number {
    return this.#keptBytes + this.#retainedBytes;
  }

  /** from now on the last {@link retainedBytes} that are passed on are kept, for another connection. */
  retain(): void {
    this.#retains = true;
  }

  /**
   * stops passing on. What is retained goes first when it is sent again; the answer is the offset in the whole
   * body at which that begins.
   */
  rewind(): number {
    this.#sink = undefined;
    if (!this.#ended) this.#source?.stream.pause();
    this.#kept = [...this.#retained, ...this.#kept];
    this.#keptBytes += this.#retainedBytes;
    this.#retained = [];
    this.#retainedBytes = 0;
    return this.#seenBytes - this.#keptBytes;
  }

  /** Starts reading what may be short, and says when the head may go. */
  begin(listener: BodyListener): void {
    this.#listener = listener;
    const { announcedBytes = 0 } = this.#source ?? {};
    if (this.#ended || announcedBytes > this.#limits.bufferedBodyBytes) return this.#tellReady();
    this.#want();
    this.#cancelWait = this.#clock.after(this.#limits.shortBodyWaitMs, () => this.#tellReady());
  }

  /** Puts bytes in front that were read before (the first bytes after an upgrade). */
  unshift(bytes: Buffer): void {
    if (bytes.length > 0) this.#keep(bytes);
  }

  /** Sends a complete body, and keeps it for another time. */
  sendWhole(sink: LinkStream): void {
    for (const chunk of this.#kept) sink.send(chunk);
    sink.end();
  }

  /** Sends what is kept, lets go of it, and passes on the rest as it comes and as the sink takes it. */
  flow(sink: LinkStream): void {
    this.#sink = sink;
    let room = true;
    for (const chunk of this.#kept) room = sink.send(chunk);
    this.release();
    if (this.#ended) return sink.end();
    this.#want();
    if (room) this.#source?.stream.resume();
    else this.#source?.stream.pause();
  }

  /** Whether its bytes have begun to pass on without being kept: it cannot be sent again. */
  get flowing(): boolean {
    return this.#sink !== undefined;
  }

  /** The sink has room again. */
  drained(): void {
    if (this.#sink !== undefined && !this.#discarding) this.#source?.stream.resume();
  }

  /** Lets go of what is kept: the request will not be sent again whole. */
  release(): void {
    for (const chunk of this.#kept) this.#passed(chunk);
    this.#kept = [];
    this.#keptBytes = 0;
  }

  /** From now on the rest is read and thrown away, so that an answer can be sent while the caller still uploads. */
  discard(): void {
    this.#cancelWait?.();
    this.#discarding = true;
    this.#sink = undefined;
    this.#listener = undefined;
    this.#retains = false;
    this.#retained = [];
    this.#retainedBytes = 0;
    this.release();
    if (this.#ended || this.#source === undefined) return;
    this.#read();
    this.#source.stream.resume();
  }

  #want(): void {
    if (this.#reading) return;
    this.#source?.wanted();
    this.#read();
  }

  #read(): void {
    const stream = this.#source?.stream;
    if (stream === undefined || this.#reading) return;
    this.#reading = true;
    stream.on("data", (chunk: Buffer) => this.#took(chunk));
    stream.on("end", () => this.#finish());
  }

  #took(chunk: Buffer): void {
    if (this.#discarding) return;
    this.#seenBytes += chunk.length;
    if (this.#seenBytes > this.#limits.bodyBytes) {
      this.#source?.stream.pause();
      this.#listener?.bodyTooLarge();
    } else if (this.#sink === undefined) {
      this.#keep(chunk);
    } else {
      this.#passed(chunk);
      if (!this.#sink.send(chunk)) this.#source?.stream.pause();
    }
  }

  #passed(chunk: Buffer): void {
    if (!this.#retains) return;
    this.#retained.push(chunk);
    this.#retainedBytes += chunk.length;
    for (let first = this.#retained[0]; first !== undefined; first = this.#retained[0]) {
      if (this.#retainedBytes - first.length < retainedBytes) return;
      this.#retained.shift();
      this.#retainedBytes -= first.length;
    }
  }

  #keep(chunk: Buffer): void {
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes <= this.#limits.bufferedBodyBytes) return;
    this.#source?.stream.pause();
    this.#tellReady();
  }

  #finish(): void {
    if (this.#source?.cut() === true) return;
    this.#ended = true;
    if (this.#sink !== undefined) this.#sink.end();
    else this.#tellReady();
  }

  #tellReady(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#cancelWait?.();
    this.#listener?.bodyReady();
  }
}
