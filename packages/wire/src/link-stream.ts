// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isSpaceError, SpaceError } from "@space/model";
import { type Frame, type FrameType, frameType, headLimitBytes } from "./frame.ts";
import { ReceiveWindow, SendWindow } from "./stream-window.ts";

/**
 * What the user of a stream is told. Called in order; nothing is called after `onReset`, or after both sides' end. What
 * a handler throws is a bug: it resets this stream alone (`onReset` follows) and is reported to the link's owner.
 */
export interface StreamHandlers {
  /** The acceptor's head (opener's side only), at most once. */
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
  /** Whether the socket is behind; the stream is then told by `resume` when it no longer is. */
  isBehind(stream: LinkStream): boolean;
  write(type: FrameType, stream: number, payload: Buffer | string | undefined): void;
  forget(stream: LinkStream): void;
  /** Something in this process has a bug. */
  report(error: unknown): void;
}

export interface LinkStreamOptions {
  readonly id: number;
  readonly side: "opener" | "acceptor";
  /** An acceptor's are set by {@link LinkStream.handle}. */
  readonly handlers?: StreamHandlers;
}

/** One stream of a {@link FrameLink}: a head and bytes each way, each direction ended apart, both reset at once. */
export class LinkStream {
  readonly id: number;
  readonly #side: "opener" | "acceptor";
  readonly #link: StreamCarrier;
  readonly #out: SendWindow;
  readonly #in = new ReceiveWindow();
  #handlers: StreamHandlers | undefined;
  /** Why the stream failed before it had handlers to tell. */
  #untold: string | undefined;
  #starved = false;
  #heads: "none" | "proceed" | "head" = "none";
  #outEnd: "open" | "ending" | "ended" = "open";
  #gotEnd = false;
  #over = false;

  constructor(link: StreamCarrier, { id, side, handlers }: LinkStreamOptions) {
    this.id = id;
    this.#link = link;
    this.#side = side;
    this.#handlers = handlers;
    this.#out = new SendWindow((bytes) => link.write(frameType.data, id, bytes));
  }

  /** Whether nothing more can be sent or will be received. */
  get over(): boolean {
    return this.#over;
  }

  /** Replaces the handlers (an acceptor sets them when it has decided what to do). */
  handle(handlers: StreamHandlers): void {
    this.#handlers = handlers;
    const reason = this.#untold;
    this.#untold = undefined;
    if (reason !== undefined) this.#tell((told) => told.onReset(reason));
  }

  /** The acceptor's head; at most once. One above `headLimitBytes` breaks the stream off (`link/head-too-large`). */
  sendHead(head: string, end: boolean): void {
    this.#mustAccept();
    if (this.#over || this.#heads === "head" || this.#outEnd !== "open") return;
    if (Buffer.byteLength(head) > headLimitBytes) return this.#breakOff("link/head-too-large");
    this.#heads = "head";
    this.#link.write(end ? frameType.headEnd : frameType.head, this.id, head);
    if (end) this.markEnded();
  }

  /** the acceptor asks for the body that the opener holds back. At most once, before the head. */
  sendProceed(admission: string): void {
    this.#mustAccept();
    if (this.#over || this.#heads !== "none" || this.#outEnd !== "open") return;
    this.#heads = "proceed";
    this.#link.write(frameType.proceed, this.id, admission);
  }

  /**
   * Sends bytes, which must not be changed afterwards. False: stop until `onDrain`; what was given is sent all the same.
   * Going on for `streamBacklogLimitBytes` nevertheless breaks the stream off (`link/backlog`).
   */
  send(chunk: Buffer): boolean {
    if (this.#over || this.#outEnd !== "open") return true;
    if (!this.#out.push(chunk)) this.#breakOff("link/backlog");
    else if (!this.#out.open || this.#link.isBehind(this)) this.#starved = true;
    return !this.#starved;
  }

  /** Nothing more will be sent; what waits for credit goes first. */
  end(): void {
    if (this.#over || this.#outEnd !== "open") return;
    this.#outEnd = "ending";
    this.#endWhenIdle();
  }

  /** Ends both directions for both sides; the own handlers are not called. What waits for credit is dropped. */
  reset(reason: string): void {
    if (this.#over) return;
    this.#link.write(frameType.reset, this.id, reason);
    this.#finish();
  }

  /** Gives back bytes received, so that the sender may go on. More than were received: `TypeError`. */
  consumed(bytes: number): void {
    if (this.#over) return;
    const credit = this.#in.consumed(bytes);
    if (credit !== undefined && !this.#gotEnd) this.#link.write(frameType.credit, this.id, credit);
  }

  /** Tells the link's owner of a bug in what serves this stream. */
  report(error: unknown): void {
    this.#link.report(error);
  }

  /** For the link: this side's end went out with another frame. */
  markEnded(): void {
    this.#outEnd = "ended";
    if (this.#gotEnd) this.#finish();
  }

  /** For the link: the socket has room again. */
  resume(): void {
    if (this.#over || !this.#starved || !this.#out.open || this.#outEnd !== "open") return;
    this.#starved = false;
    this.#tell((handlers) => handlers.onDrain?.());
  }

  /** For the link: the stream is over without the other side's word. */
  fail(reason: string): void {
    if (this.#over) return;
    this.#finish();
    if (this.#handlers === undefined) this.#untold = reason;
    else this.#tell((handlers) => handlers.onReset(reason));
  }

  /** For the link: what the user of this stream did was a bug, or a refusal of what the opener sent. */
  broken(error: unknown): void {
    this.#link.report(error);
    this.#breakOff(isSpaceError(error) ? error.code : "internal/bug");
  }

  /** For the link: a frame of this stream came. Throws `link/protocol` when it may not come now. */
  receive(frame: Frame): void {
    switch (frame.type) {
      case frameType.head:
        return this.#head(frame.payload);
      case frameType.headEnd:
        this.#head(frame.payload);
        return this.#ended();
      case frameType.proceed:
        return this.#proceed(frame.payload.toString("latin1", 0, 64));
      case frameType.data:
        return this.#data(frame.payload);
      case frameType.dataEnd:
        this.#data(frame.payload);
        return this.#ended();
      case frameType.end:
        return this.#ended();
      case frameType.reset:
        return this.fail(readReason(frame.payload));
      case frameType.credit:
        return this.#credited(frame.payload);
      default:
        throw violation("unexpected frame");
    }
  }

  #mustAccept(): void {
    if (this.#side !== "acceptor") throw new TypeError("only the acceptor of a stream answers it");
  }

  #head(payload: Buffer): void {
    const mayCome = this.#side === "opener" && this.#heads !== "head" && !this.#gotEnd;
    if (!mayCome) throw violation("unexpected head");
    this.#heads = "head";
    try {
      this.#handlers?.onHead?.(payload);
    } catch (error) {
      this.broken(error);
    }
  }

  #proceed(admission: string): void {
    const mayCome = this.#side === "opener" && this.#heads === "none" && !this.#gotEnd;
    if (!mayCome) throw violation("unexpected proceed");
    this.#heads = "proceed";
    this.#tell((handlers) => handlers.onProceed?.(admission));
  }

  #data(chunk: Buffer): void {
    if (this.#gotEnd) throw violation("data after end");
    this.#in.received(chunk.length);
    try {
      this.#handlers?.onData(chunk);
    } catch (error) {
      this.broken(error);
    }
  }

  #ended(): void {
    if (this.#over) return; // the handler of what this end came with has reset the stream
    if (this.#gotEnd) throw violation("a second end");
    this.#gotEnd = true;
    try {
      this.#handlers?.onEnd();
    } catch (error) {
      this.broken(error);
    }
    if (this.#outEnd === "ended") this.#finish();
  }

  #credited(payload: Buffer): void {
    this.#out.credited(payload);
    this.#endWhenIdle();
    if (this.#starved && this.#out.open && !this.#link.isBehind(this)) this.resume();
  }

  #endWhenIdle(): void {
    if (this.#outEnd !== "ending" || !this.#out.idle) return;
    this.#link.write(frameType.end, this.id, undefined);
    this.markEnded();
  }

  /** Ends both directions, and tells both sides. */
  #breakOff(reason: string): void {
    if (this.#over) return;
    this.#link.write(frameType.reset, this.id, reason);
    this.fail(reason);
  }

  #tell(say: (handlers: StreamHandlers) => void): void {
    if (this.#handlers === undefined) return;
    try {
      say(this.#handlers);
    } catch (error) {
      this.broken(error);
    }
  }

  #finish(): void {
    this.#over = true;
    this.#out.clear();
    this.#link.forget(this);
  }
}

/** A reset's word, whatever the other side put there. */
function readReason(payload: Buffer): string {
  const text = payload.toString("latin1", 0, 64);
  return /^[\x20-\x7e]+$/.test(text) ? text : "unknown";
}

function violation(problem: string): SpaceError {
  return new SpaceError("link/protocol", { problem });
}
