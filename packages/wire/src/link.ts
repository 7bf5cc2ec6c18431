// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { SpaceError } from "@space/model";
import { encodeHeader, type Frame, FrameReader, framePayloadLimitBytes, frameType } from "./frame.ts";
import { LinkStream, type StreamHandlers, streamWindowBytes } from "./link-stream.ts";

/** Above this many queued bytes the link's streams are told to wait for the socket. */
const congestionBytes = 4 * 1024 * 1024;
/** Frames shorter than this are joined into one write. */
const joinLimitBytes = 16 * 1024;
const defaultMaxStreams = 20_000;
/** Heads larger than this are refused: headers have their own, lower limits at the edge. */
export const headLimitBytes: number = 512 * 1024;

export interface LinkOptions {
  /** Whether this side dialled: decides the parity of the ids of the streams that it opens. */
  readonly dialled: boolean;
  /**
   * Called for each stream that the other side opens; returns its handlers. `ended`: nothing follows the head. What it
   * throws ends the link. Absent: such a stream ends the link.
   */
  readonly onOpen?: (stream: LinkStream, head: Buffer, ended: boolean) => StreamHandlers;
  /** Called once, when the link is gone; every open stream has been reset by then. */
  readonly onClose?: (cause: unknown) => void;
  readonly maxStreams?: number;
}

/**
 * Many streams over one socket, each with its own flow control, so that a slow reader of one never holds up another.
 * Frames written in one turn of the event loop leave in one write. The link never reconnects: when the socket ends,
 * every stream is reset with `link/closed` and the owner decides.
 */
export class FrameLink {
  readonly #socket: Duplex;
  readonly #options: LinkOptions;
  readonly #streams = new Map<number, LinkStream>();
  readonly #reader = new FrameReader();
  #nextId: number;
  #queue: Buffer[] = [];
  #flushing = false;
  #closed = false;
  readonly #pings: (() => void)[] = [];

  constructor(socket: Duplex, options: LinkOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#nextId = options.dialled ? 1 : 2;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("drain", () => this.#drained());
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy(undefined));
    socket.on("end", () => this.destroy(undefined));
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
    return this.#socket.writableLength > congestionBytes;
  }

  /** Opens a stream. On a closed link the handlers' `onReset("link/closed")` is called in the next turn. */
  open(head: string, handlers: StreamHandlers, end: boolean): LinkStream {
    const stream = new LinkStream(this, this.#nextId, handlers);
    if (this.#closed || this.#streams.size >= (this.#options.maxStreams ?? defaultMaxStreams)) {
      setImmediate(() => stream.fail(this.#closed ? "link/closed" : "link/too-many-streams"));
      return stream;
    }
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    this.write(end ? frameType.openEnd : frameType.open, stream.id, Buffer.from(head));
    if (end) stream.markEnded();
    return stream;
  }

  /** Resolves when the other side has answered; rejects when the link ends first. */
  ping(): Promise<void> {
    if (this.#closed) return Promise.reject(new SpaceError("link/closed", {}));
    return new Promise((resolve, reject) => {
      this.#pings.push(() => (this.#closed ? reject(new SpaceError("link/closed", {})) : resolve()));
      this.write(frameType.ping, 0, undefined);
    });
  }

  /** Ends the socket and resets every stream. Repeating it does nothing. */
  destroy(cause: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.destroy();
    for (const stream of [...this.#streams.values()]) stream.fail("link/closed");
    this.#streams.clear();
    for (const pong of this.#pings.splice(0)) pong();
    this.#options.onClose?.(cause);
  }

  /** For {@link LinkStream}: queues one frame. */
  write(type: Parameters<typeof encodeHeader>[0], stream: number, payload: Buffer | undefined): void {
    if (this.#closed) return;
    this.#queue.push(encodeHeader(type, stream, payload?.length ?? 0));
    if (payload !== undefined && payload.length > 0) this.#queue.push(payload);
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  /** For {@link LinkStream}: the stream is over in both directions. */
  forget(stream: number): void {
    this.#streams.delete(stream);
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#closed) return;
    const queue = this.#queue;
    this.#queue = [];
    this.#socket.cork();
    let small: Buffer[] = [];
    for (const piece of queue) {
      if (piece.length <= joinLimitBytes) {
        small.push(piece);
        continue;
      }
      this.#writeJoined(small);
      small = [];
      this.#socket.write(piece);
    }
    this.#writeJoined(small);
    this.#socket.uncork();
  }

  #writeJoined(pieces: Buffer[]): void {
    const first = pieces[0];
    if (first !== undefined) this.#socket.write(pieces.length === 1 ? first : Buffer.concat(pieces));
  }

  #drained(): void {
    for (const stream of [...this.#streams.values()]) stream.drained();
  }

  #receive(bytes: Buffer): void {
    try {
      this.#reader.push(bytes, (frame) => this.#dispatch(frame));
    } catch (error) {
      this.destroy(error);
    }
  }

  #dispatch(frame: Frame): void {
    switch (frame.type) {
      case frameType.open:
        return this.#opened(frame, false);
      case frameType.openEnd:
        return this.#opened(frame, true);
      case frameType.ping:
        return this.write(frameType.pong, 0, undefined);
      case frameType.pong:
        return this.#pings.shift()?.();
      default:
        // A frame of a stream that is over here was on its way when it ended: dropped on purpose.
        this.#streams.get(frame.stream)?.receive(frame);
    }
  }

  #opened(frame: Frame, ended: boolean): void {
    const { onOpen, dialled, maxStreams = defaultMaxStreams } = this.#options;
    const theirs = frame.stream % 2 === (dialled ? 0 : 1);
    if (
      onOpen === undefined ||
      !theirs ||
      this.#streams.has(frame.stream) ||
      frame.payload.length > headLimitBytes
    ) {
      throw new SpaceError("link/protocol", { problem: "unexpected stream" });
    }
    if (this.#streams.size >= maxStreams) {
      this.write(frameType.reset, frame.stream, Buffer.from("link/too-many-streams"));
      return;
    }
    const stream = new LinkStream(this, frame.stream, undefined);
    this.#streams.set(frame.stream, stream);
    stream.handle(onOpen(stream, frame.payload, ended));
    if (ended) stream.receive({ type: frameType.end, stream: frame.stream, payload: Buffer.alloc(0) });
  }
}

/** What one stream may have in flight before the reader has consumed it, with one frame of overshoot. */
export const streamInFlightLimitBytes: number = streamWindowBytes + framePayloadLimitBytes;
