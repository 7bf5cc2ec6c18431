// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { type FrameBuilder, FrameParser, ProtocolError } from "./frames.ts";
import { GuestConnectionError, GuestError } from "./guest-error.ts";
import type { FrameSink, ProcessLink } from "./guest-process.ts";
import { GuestFrame } from "./guest-protocol.ts";

/**
 * One connection's framing: requests and their answers, one at a time, until a process or a dialled port takes it over.
 * Every promise given out settles, at the latest when the socket ends.
 */
export class FrameExchange implements ProcessLink {
  readonly socket: Socket;
  readonly #parser: FrameParser;
  #sink: FrameSink | null = null;
  #fault: GuestConnectionError | null = null;
  #takenOver = false;

  constructor(socket: Socket) {
    this.socket = socket;
    this.#parser = new FrameParser((type, payload) => {
      const sink = this.#sink;
      if (sink === null) throw new ProtocolError("unexpected frame");
      sink.onFrame(type, payload);
    });
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", this.#onError);
    socket.on("close", this.#onEnd);
  }

  /** True while a request may be sent. */
  get usable(): boolean {
    return this.#fault === null && this.#sink === null && !this.#takenOver;
  }

  get ended(): boolean {
    return this.#fault !== null;
  }

  /** Begins a request; to be followed by `answer` or `stream` before anything else. Throws when one is running: a bug. */
  send(request: Buffer): void {
    if (this.#sink !== null || this.#takenOver)
      throw new TypeError("a guest connection serves one operation at a time");
    if (this.#fault === null) this.socket.write(request);
  }

  /** The one frame that answers a request. */
  answer<T>(decode: (type: number, payload: Buffer) => T): Promise<T> {
    return this.stream<{ value: T }>((type, payload) => ({ value: decode(type, payload) })).then(unwrap);
  }

  /** Feeds frames to `next` until it returns something. An ERROR frame rejects and leaves the connection usable. */
  stream<T>(next: (type: number, payload: Buffer) => T | undefined): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#fault !== null) {
        reject(this.#fault);
        return;
      }
      const sink: FrameSink = {
        onFrame: (type, payload) => {
          if (type === GuestFrame.error) {
            const refusal = GuestError.decode(payload); // throws when it is none: the sink must still be told
            this.#sink = null;
            reject(refusal);
            return;
          }
          let result: T | undefined;
          try {
            result = next(type, payload);
          } catch (thrown) {
            // A caller's handler threw or the peer misbehaved: the stream's state is unknown from here on.
            const error = thrown instanceof Error ? thrown : new TypeError("not an error", { cause: thrown });
            reject(error);
            throw error;
          }
          if (result === undefined) return;
          if (this.#sink === sink) this.#sink = null;
          resolve(result);
        },
        onClosed: reject,
      };
      this.#sink = sink;
    });
  }

  /** From now on every frame goes to `sink`. */
  takeOver(sink: FrameSink): void {
    this.#takenOver = true;
    this.#sink = sink;
  }

  /** Whoever had taken it over has had its last frame: requests may be sent again. */
  handBack(): void {
    this.#takenOver = false;
    this.#sink = null;
    this.socket.resume();
  }

  /** Gives the socket away as a raw pipe, paused. Bytes that came after the last frame are its first. */
  release(): Socket {
    this.#takenOver = true;
    const { socket } = this;
    const leftover = this.#parser.stop();
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("error", this.#onError);
    socket.off("close", this.#onEnd);
    socket.pause();
    queueMicrotask(() => {
      const early = leftover();
      if (early.length > 0) socket.unshift(early);
    });
    return socket;
  }

  writeFrames(bytes: Buffer | FrameBuilder): boolean {
    if (this.#fault !== null) return false;
    return this.socket.write(Buffer.isBuffer(bytes) ? bytes : bytes.finish());
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  drained(): Promise<void> {
    const { socket } = this;
    if (!socket.writableNeedDrain || this.#fault !== null) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        socket.off("drain", done);
        socket.off("close", done);
        resolve();
      };
      socket.on("drain", done);
      socket.on("close", done);
    });
  }

  destroy(): void {
    this.fail(new GuestConnectionError("closed"));
  }

  /** Ends the connection once; whoever waits gets the fault. */
  fail(fault: GuestConnectionError): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    const sink = this.#sink;
    this.#sink = null;
    this.socket.destroy();
    sink?.onClosed(fault);
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#parser.push(chunk);
    } catch (cause) {
      this.fail(
        cause instanceof GuestConnectionError
          ? cause
          : new GuestConnectionError(cause instanceof ProtocolError ? "protocol" : "closed", { cause }),
      );
    }
  };

  readonly #onEnd = (): void => this.fail(new GuestConnectionError("closed"));

  readonly #onError = (cause: Error): void => this.fail(new GuestConnectionError("closed", { cause }));
}

function unwrap<T>(box: { value: T }): T {
  return box.value;
}
