// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { SpaceError } from "@space/model";
import { type Frame, FrameReader, type FrameType, frameType, headLimitBytes } from "./frame.ts";
import { LinkStream, type StreamCarrier, type StreamHandlers } from "./link-stream.ts";
import { SendQueue } from "./send-queue.ts";
import { StreamIds } from "./stream-ids.ts";

/** Above this many queued bytes the link's streams are told to wait for the socket. */
const congestionBytes = 4 * 1024 * 1024;
/** A peer that lets this much pile up does not read: the link ends. */
export const linkBacklogLimitBytes: number = 256 * 1024 * 1024;
const defaultMaxStreams = 20_000;

export interface LinkOptions {
  /** Whether this side dialled: decides the parity of the ids of the streams that it opens. */
  readonly dialled: boolean;
  /**
   * Called for each stream that the other side opens; returns its handlers. `ended`: nothing follows the head. What it
   * throws resets that stream, with its code when it is a `SpaceError`, and is reported. Absent: such a stream ends the link.
   */
  readonly onOpen?: (stream: LinkStream, head: Buffer, ended: boolean) => StreamHandlers;
  /** Called once, when the link is gone; every open stream has been reset by then. */
  readonly onClose?: (cause: unknown) => void;
  /** Told what a handler threw: a bug that has cost one stream. Absent: a process warning. */
  readonly onBug?: (error: unknown) => void;
  /** Most streams at a time, of both sides together; one more is reset with `link/too-many-streams`. */
  readonly maxStreams?: number;
}

/**
 * Many streams over one socket, each with its own flow control, so that a slow reader of one never holds up another.
 * Frames written in one turn of the event loop leave in one write. The link never reconnects: when the socket ends,
 * every stream is reset with `link/closed` and the owner decides. A peer that breaks the protocol ends the link;
 * a bug in one stream's handlers costs that stream only.
 */
export class FrameLink {
  readonly #socket: Duplex;
  readonly #options: LinkOptions;
  readonly #maxStreams: number;
  readonly #streams = new Map<number, LinkStream>();
  /** Streams that were told to stop because the socket was behind. */
  readonly #behind = new Set<LinkStream>();
  readonly #reader = new FrameReader();
  readonly #ids: StreamIds;
  readonly #queue: SendQueue;
  readonly #carrier: StreamCarrier;
  readonly #pings: (() => void)[] = [];
  #flushing = false;
  #closed = false;

  constructor(socket: Duplex, options: LinkOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#maxStreams = options.maxStreams ?? defaultMaxStreams;
    this.#ids = new StreamIds(options.dialled);
    this.#queue = new SendQueue(socket);
    this.#carrier = {
      isBehind: (stream) => this.#isBehind(stream),
      write: (type, stream, payload) => this.#write(type, stream, payload),
      forget: (stream) => this.#forget(stream),
      report: (error) => this.#report(error),
    };
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("drain", () => this.#drained());
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy(undefined));
    // A link is never half open: what is still queued would be read by nobody.
    socket.on("end", () => this.destroy(undefined));
    if (socket.destroyed) setImmediate(() => this.destroy(undefined));
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Streams open now. */
  get size(): number {
    return this.#streams.size;
  }

  /** True while the socket is behind: streams then report no room. */
  get congested(): boolean {
    return this.#queue.backlogBytes > congestionBytes;
  }

  /**
   * Opens a stream. When it cannot be opened its `onReset` is called in the next turn: `link/closed`,
   * `link/too-many-streams`, or `link/head-too-large` for a head above `headLimitBytes`.
   */
  open(head: string, handlers: StreamHandlers, end: boolean): LinkStream {
    const refusal = this.#refusalToOpen(head);
    if (refusal !== undefined) return this.#unopened(handlers, refusal);
    const id = this.#ids.take((taken) => this.#streams.has(taken));
    const stream = new LinkStream(this.#carrier, { id, side: "opener", handlers });
    this.#streams.set(id, stream);
    this.#write(end ? frameType.openEnd : frameType.open, id, head);
    if (end) stream.markEnded();
    return stream;
  }

  /**
   * Resolves when the other side has received everything sent before; rejects with `link/closed` when the link ends
   * first. It has no limit of time of its own.
   */
  ping(): Promise<void> {
    if (this.#closed) return Promise.reject(new SpaceError("link/closed", {}));
    return new Promise((resolve, reject) => {
      this.#pings.push(() => (this.#closed ? reject(new SpaceError("link/closed", {})) : resolve()));
      this.#write(frameType.ping, 0, undefined);
    });
  }

  /**
   * Ends the socket and resets every stream. What is still queued is dropped: an owner who wants it delivered pings
   * first. Repeating it does nothing.
   */
  destroy(cause: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.clear();
    this.#socket.destroy();
    for (const stream of [...this.#streams.values()]) stream.fail("link/closed");
    for (const pong of this.#pings.splice(0)) pong();
    this.#guarded(() => this.#options.onClose?.(cause));
  }

  #refusalToOpen(head: string): string | undefined {
    if (this.#closed) return "link/closed";
    if (this.#streams.size >= this.#maxStreams) return "link/too-many-streams";
    return Buffer.byteLength(head) > headLimitBytes ? "link/head-too-large" : undefined;
  }

  /** A stream that the other side never hears of. */
  #unopened(handlers: StreamHandlers, reason: string): LinkStream {
    const nowhere: StreamCarrier = {
      isBehind: () => false,
      write: () => undefined,
      forget: () => undefined,
      report: (error) => this.#report(error),
    };
    const stream = new LinkStream(nowhere, { id: 0, side: "opener", handlers });
    setImmediate(() => stream.fail(reason));
    return stream;
  }

  #write(type: FrameType, stream: number, payload: Buffer | string | undefined): void {
    if (this.#closed) return;
    this.#queue.add(type, stream, payload);
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  #forget(stream: LinkStream): void {
    this.#streams.delete(stream.id);
    this.#behind.delete(stream);
  }

  #isBehind(stream: LinkStream): boolean {
    if (!this.congested) return false;
    this.#behind.add(stream);
    return true;
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#closed) return;
    if (this.#queue.backlogBytes > linkBacklogLimitBytes) {
      return this.destroy(new SpaceError("link/protocol", { problem: "the other side does not read" }));
    }
    this.#queue.flush();
    // "drain" comes only after a write that found the socket full.
    if (!this.#socket.writableNeedDrain) this.#drained();
  }

  #drained(): void {
    const streams = [...this.#behind];
    this.#behind.clear();
    for (const stream of streams) stream.resume();
  }

  #receive(bytes: Buffer): void {
    try {
      this.#reader.push(bytes, (frame) => this.#dispatch(frame));
    } catch (error) {
      this.destroy(error);
    }
  }

  #dispatch(frame: Frame): void {
    if (this.#closed) return; // ended by a frame before this one
    switch (frame.type) {
      case frameType.open:
        return this.#opened(frame, false);
      case frameType.openEnd:
        return this.#opened(frame, true);
      case frameType.ping:
        return this.#write(frameType.pong, 0, undefined);
      case frameType.pong:
        return this.#pings.shift()?.();
      default:
        if (frame.type > frameType.dataEnd || frame.type === 0) throw violation("unknown frame");
        // A frame of a stream that is over here was on its way when it ended: dropped on purpose.
        this.#streams.get(frame.stream)?.receive(frame);
    }
  }

  #opened(frame: Frame, ended: boolean): void {
    const { onOpen } = this.#options;
    const id = frame.stream;
    const mayOpen = onOpen !== undefined && this.#ids.isTheirs(id) && !this.#streams.has(id);
    if (!mayOpen) throw violation("unexpected stream");
    if (this.#streams.size >= this.#maxStreams) {
      return this.#write(frameType.reset, id, "link/too-many-streams");
    }
    const stream = new LinkStream(this.#carrier, { id, side: "acceptor" });
    this.#streams.set(id, stream);
    try {
      stream.handle(onOpen(stream, frame.payload, ended));
    } catch (error) {
      return stream.broken(error);
    }
    if (ended) stream.receive({ type: frameType.end, stream: id, payload: Buffer.alloc(0) });
  }

  #report(error: unknown): void {
    const { onBug } = this.#options;
    if (onBug !== undefined) onBug(error);
    else process.emitWarning(error instanceof Error ? error : String(error));
  }

  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#report(error);
    }
  }
}

function violation(problem: string): SpaceError {
  return new SpaceError("link/protocol", { problem });
}
