// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import { type Frame, type FrameType, framePayloadLimitBytes, frameType } from "./frame.ts";

/** How much one stream may send before the receiver has consumed any of it. */
export const streamWindowBytes: number = 512 * 1024;
const creditStepBytes = streamWindowBytes / 4;

/** What the user of a stream is told. Called in order; nothing is called after `onReset`, or after both sides' end. */
export interface StreamHandlers {
  /** The acceptor's head (opener's side only). */
  onHead?(head: Buffer): void;
  /** The acceptor lets the body come (opener's side only); `admission` is the id that it let through. */
  onProceed?(admission: string): void;
  /** Each chunk must be given back with `consumed` once it is dealt with, or the sender stops. */
  onData(chunk: Buffer): void;
  /** The other side has nothing more to send. */
  onEnd(): void;
  /** Both directions are over; `reason` is a word. Also called when the link ends (`link/closed`). */
  onReset(reason: string): void;
  /** There is room again after `send` returned false. */
  onDrain?(): void;
}

/** The part of the link that a stream uses. */
export interface StreamCarrier {
  readonly congested: boolean;
  write(type: FrameType, stream: number, payload: Buffer | undefined): void;
  forget(stream: number): void;
}

/** One stream of a {@link FrameLink}: a head and bytes each way, each direction ended apart, both reset at once. */
export class LinkStream {
  readonly id: number;
  readonly #link: StreamCarrier;
  #handlers: StreamHandlers | undefined;
  #credit = streamWindowBytes;
  #unconsumed = 0;
  #owed = 0;
  #starved = false;
  #sentHead = false;
  #sentProceed = false;
  #sentEnd = false;
  #gotEnd = false;
  #over = false;

  constructor(link: StreamCarrier, id: number, handlers: StreamHandlers | undefined) {
    this.#link = link;
    this.id = id;
    this.#handlers = handlers;
  }

  /** Whether nothing more can be sent or will be received. */
  get over(): boolean {
    return this.#over;
  }

  /** Replaces the handlers (an acceptor sets them when it has decided what to do). */
  handle(handlers: StreamHandlers): void {
    this.#handlers = handlers;
  }

  /** The acceptor's head; at most once. */
  sendHead(head: string, end: boolean): void {
    if (this.#over || this.#sentHead || this.#sentEnd) return;
    this.#sentHead = true;
    this.#link.write(end ? frameType.headEnd : frameType.head, this.id, Buffer.from(head));
    if (end) this.markEnded();
  }

  /** the acceptor asks for the body that the opener holds back. At most once, before the head. */
  sendProceed(admission: string): void {
    if (this.#over || this.#sentHead || this.#sentEnd || this.#sentProceed) return;
    this.#sentProceed = true;
    this.#link.write(frameType.proceed, this.id, Buffer.from(admission));
  }

  /** Sends bytes. False: stop until `onDrain`; what was given is sent all the same. */
  send(chunk: Buffer): boolean {
    if (this.#over || this.#sentEnd) return true;
    for (let at = 0; at < chunk.length; at += framePayloadLimitBytes) {
      this.#link.write(frameType.data, this.id, chunk.subarray(at, at + framePayloadLimitBytes));
    }
    this.#credit -= chunk.length;
    this.#starved = this.#credit <= 0 || this.#link.congested;
    return !this.#starved;
  }

  end(): void {
    if (this.#over || this.#sentEnd) return;
    this.#link.write(frameType.end, this.id, undefined);
    this.markEnded();
  }

  /** Ends both directions for both sides; the own handlers are not called. */
  reset(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#link.write(frameType.reset, this.id, Buffer.from(reason));
    this.#link.forget(this.id);
  }

  /** Gives back bytes received, so that the sender may go on. */
  consumed(bytes: number): void {
    this.#unconsumed -= bytes;
    this.#owed += bytes;
    if (this.#over || this.#gotEnd || this.#owed < creditStepBytes) return;
    const credit = Buffer.allocUnsafe(4);
    credit.writeUInt32BE(this.#owed);
    this.#owed = 0;
    this.#link.write(frameType.credit, this.id, credit);
  }

  /** For the link: this side's end went out with another frame. */
  markEnded(): void {
    this.#sentEnd = true;
    this.#finishIfBothEnded();
  }

  /** For the link: the socket has room again. */
  drained(): void {
    if (!this.#starved || this.#credit <= 0) return;
    this.#starved = false;
    this.#handlers?.onDrain?.();
  }

  /** For the link: the stream is over without the other side's word. */
  fail(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#link.forget(this.id);
    this.#handlers?.onReset(reason);
  }

  /** For the link: a frame of this stream came. Throws `link/protocol` when it may not come now. */
  receive(frame: Frame): void {
    switch (frame.type) {
      case frameType.head:
        return this.#handlers?.onHead?.(frame.payload);
      case frameType.headEnd:
        this.#handlers?.onHead?.(frame.payload);
        return this.#ended();
      case frameType.proceed:
        return this.#handlers?.onProceed?.(frame.payload.toString("latin1", 0, 64));
      case frameType.data:
        return this.#data(frame.payload);
      case frameType.end:
        return this.#ended();
      case frameType.reset:
        return this.fail(frame.payload.toString("utf8", 0, 64));
      case frameType.credit:
        return this.#credited(frame.payload);
      default:
        throw new SpaceError("link/protocol", { problem: "unknown frame" });
    }
  }

  #data(chunk: Buffer): void {
    if (this.#over) return;
    this.#unconsumed += chunk.length;
    if (this.#gotEnd || this.#unconsumed > streamWindowBytes + framePayloadLimitBytes) {
      throw new SpaceError("link/protocol", { problem: this.#gotEnd ? "data after end" : "window exceeded" });
    }
    this.#handlers?.onData(chunk);
  }

  #ended(): void {
    if (this.#over || this.#gotEnd) return;
    this.#gotEnd = true;
    this.#handlers?.onEnd();
    this.#finishIfBothEnded();
  }

  #credited(payload: Buffer): void {
    if (payload.length !== 4) throw new SpaceError("link/protocol", { problem: "bad credit" });
    this.#credit += payload.readUInt32BE();
    if (this.#credit > 2 * streamWindowBytes)
      throw new SpaceError("link/protocol", { problem: "too much credit" });
    if (this.#starved && this.#credit > 0 && !this.#link.congested) {
      this.#starved = false;
      this.#handlers?.onDrain?.();
    }
  }

  #finishIfBothEnded(): void {
    if (!this.#sentEnd || !this.#gotEnd || this.#over) return;
    this.#over = true;
    this.#link.forget(this.id);
  }
}

/**
 * Handlers that pass everything from one stream to another and give back credit only as fast as the other takes it.
 * `onHead` is the relay's own business and is not set.
 */
export function relayTo(from: LinkStream, to: LinkStream): StreamHandlers & { onDrainOfTarget(): void } {
  let held = 0;
  return {
    onData(chunk) {
      if (to.send(chunk)) from.consumed(chunk.length);
      else held += chunk.length;
    },
    onEnd() {
      to.end();
    },
    onReset(reason) {
      to.reset(reason);
    },
    onDrainOfTarget() {
      const bytes = held;
      held = 0;
      if (bytes > 0) from.consumed(bytes);
    },
  };
}
