// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { FrameBuilder, FrameParser, type PayloadReader, ProtocolError } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { GuestFrame } from "../guest-protocol.ts";
import { errnoOf } from "./libc.ts";

export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** Received and not yet taken: more stops reading from the socket. */
const maxWaitingBytes = 512 * 1024;
const retireLimitMs = 2_000;

/** The guest's end of one connection: frames in their order, with back-pressure both ways. */
export class PeerConnection {
  readonly socket: Socket;
  readonly #parser: FrameParser;
  readonly #frames: Frame[] = [];
  #waitingBytes = 0;
  #closed = false;
  #retired = false;
  #wake: (() => void) | undefined;

  /** The identity under which it said hello; grows with each rekey. */
  epoch = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    this.#parser = new FrameParser((type, payload) => {
      this.#frames.push({ type, payload });
      this.#waitingBytes += payload.length;
    });
    socket.on("data", this.#onData);
    socket.on("end", this.close);
    socket.on("error", this.close);
    socket.on("close", this.close);
  }

  get closed(): boolean {
    return this.#closed || this.#retired;
  }

  /**
   * The next frame; undefined when the connection has ended or the peer broke the protocol, or when `isOver`, which is
   * asked again after `wake`.
   */
  async next(isOver: () => boolean = never): Promise<Frame | undefined> {
    for (;;) {
      if (isOver()) return undefined;
      const frame = this.closed ? undefined : this.#frames.shift();
      if (frame !== undefined) {
        this.#waitingBytes -= frame.payload.length;
        if (this.#waitingBytes <= maxWaitingBytes) this.socket.resume();
        return frame;
      }
      if (this.closed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  wake(): void {
    this.#wake?.();
  }

  /** Sends and resolves when more may be sent (or the connection has ended). */
  send(bytes: Buffer): Promise<void> {
    if (this.closed || this.socket.write(bytes)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.socket.off("drain", done);
        this.socket.off("close", done);
        resolve();
      };
      this.socket.on("drain", done);
      this.socket.on("close", done);
    });
  }

  sendError(error: unknown): Promise<void> {
    const step = error instanceof GuestError ? error.step : "internal";
    return this.send(
      new FrameBuilder(64).begin(GuestFrame.error).u32(errnoOf(error)).string(step).end().finish(),
    );
  }

  /** Gives the socket away as a raw pipe, together with bytes that came after the last frame. */
  release(): { readonly socket: Socket; readonly early: Buffer } {
    const { socket } = this;
    for (const event of ["end", "error", "close"]) socket.off(event, this.close);
    socket.off("data", this.#onData);
    socket.pause();
    return { socket, early: this.#parser.stop()() };
  }

  /** Ends the connection at once; what was sent before may be lost. */
  readonly close = (): void => {
    if (this.#closed) return;
    this.#closed = true;
    this.#frames.length = 0;
    this.socket.destroy();
    this.#wake?.();
  };

  /**
   * Its identity has ended: nothing more is taken from it, and it closes when the peer has read what was sent, and has
   * closed its own end, within a limit. Closed at once, it would break the peer's end before that.
   */
  retire(): void {
    if (this.#closed || this.#retired) return;
    this.#retired = true;
    this.#frames.length = 0;
    this.socket.off("data", this.#onData);
    this.socket.resume();
    this.socket.end();
    setTimeout(this.close, retireLimitMs).unref();
    this.#wake?.();
  }

  /** Nothing serves it any more: it is closed, unless it closes by itself. */
  leave(): void {
    if (!this.#retired) this.close();
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#parser.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close();
      return;
    }
    if (this.#waitingBytes > maxWaitingBytes) this.socket.pause();
    this.#wake?.();
  };
}

function never(): boolean {
  return false;
}

/** A string as the kernel takes it: bytes without a zero. */
export function takePath(reader: PayloadReader): Buffer {
  const bytes = reader.bytes();
  if (bytes.includes(0)) throw new ProtocolError("zero byte in a string");
  return bytes;
}

export function takeText(reader: PayloadReader): string {
  return takePath(reader).toString("utf8");
}
