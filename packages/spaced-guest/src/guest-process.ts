// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { encodeFrame, FrameBuilder, ProtocolError } from "./frames.ts";
import type { GuestConnectionError } from "./guest-error.ts";
import {
  dataChunkBytes,
  decodeExit,
  GuestFrame,
  type ProcessExit,
  type ProcessStart,
  stdinWindowBytes,
} from "./guest-protocol.ts";

/** What handles the frames that arrive now on a connection. */
export interface FrameSink {
  onFrame(type: number, payload: Buffer): void;
  onClosed(error: GuestConnectionError): void;
}

/** What a process needs of its connection. */
export interface ProcessLink {
  writeFrames(bytes: Buffer | FrameBuilder): boolean;
  pause(): void;
  resume(): void;
  destroy(): void;
  /** The process has ended: the connection is free for other requests. */
  handBack(): void;
}

/** All that this side knows of a process whose connection has ended: another place goes on with it from there. */
export interface SavedProcess {
  readonly pid: number;
  /** Of STDIN: sent, and acknowledged; what follows the latter, sent or not. */
  readonly sentBytes: number;
  readonly acknowledgedBytes: number;
  readonly input: Uint8Array;
  readonly inputEnds: boolean;
  /** Of output. */
  readonly receivedBytes: number;
  readonly size: { readonly cols: number; readonly rows: number } | null;
}

/** Where a process's events go. All are called synchronously, in order; exactly one of `onExit` and `onLost` ends it. */
export interface ProcessHandlers {
  onStdout?(chunk: Buffer): void;
  onStderr?(chunk: Buffer): void;
  onPty?(chunk: Buffer): void;
  /** `writeStdin` may be called again after it returned false. */
  onStdinDrain?(): void;
  onExit(exit: ProcessExit): void;
  /** The connection ended first: the guest kills the process, and what it did is unknown. */
  onLost(error: GuestConnectionError): void;
}

/**
 * A process running in the guest. It owns its connection, which is usable again when it has exited: `kill` by closing it, or let it exit. Output arrives through
 * the handlers; `pause` makes the guest stop reading the process's pipes once the buffers between are full.
 */
export class GuestProcess implements FrameSink {
  /** In the guest's pid namespace. */
  readonly pid: number;
  readonly #connection: ProcessLink;
  readonly #handlers: ProcessHandlers;
  #windowBytes = stdinWindowBytes;
  #queue: Uint8Array[] = [];
  /** Sent, and not known to be received: the guest acknowledges what the process has taken. */
  #unacknowledged: Uint8Array[] = [];
  #sentBytes = 0;
  #acknowledgedBytes = 0;
  /** Of output; and how much of what comes next has come before. */
  #receivedBytes = 0;
  #repeatedBytes = 0;
  #size: { readonly cols: number; readonly rows: number } | undefined;
  #eofQueued = false;
  #eofSent = false;
  #ended = false;

  // biome-ignore lint/style/useReadonlyClassProperties: set in goOn, on the next one
  #resentBytes = 0;

  /** Made by `GuestConnection.spawn` and `goOn` only. */
  constructor(connection: ProcessLink, pid: number, handlers: ProcessHandlers) {
    this.#connection = connection;
    this.pid = pid;
    this.#handlers = handlers;
  }

  /** One that was saved elsewhere, without a connection: for `GuestConnection.attach`. Throws `ProtocolError`. */
  static restored(saved: SavedProcess, handlers: ProcessHandlers): GuestProcess {
    const process = new GuestProcess(noLink, saved.pid, handlers);
    const unreceived = saved.sentBytes - saved.acknowledgedBytes;
    if (unreceived < 0 || unreceived > saved.input.length) throw new ProtocolError("input is missing");
    process.#unacknowledged = [saved.input.subarray(0, unreceived)];
    process.#queue = unreceived < saved.input.length ? [saved.input.subarray(unreceived)] : [];
    process.#sentBytes = saved.sentBytes;
    process.#acknowledgedBytes = saved.acknowledgedBytes;
    process.#receivedBytes = saved.receivedBytes;
    process.#eofQueued = saved.inputEnds;
    process.#size = saved.size ?? undefined;
    return process;
  }

  save(): SavedProcess {
    return {
      pid: this.pid,
      sentBytes: this.#sentBytes,
      acknowledgedBytes: this.#acknowledgedBytes,
      input: Buffer.concat([...this.#unacknowledged, ...this.#queue]),
      inputEnds: this.#eofQueued,
      receivedBytes: this.#receivedBytes,
      size: this.#size ?? null,
    };
  }

  /**
   * The same process on another connection, after a rekey: what the guest has not received is sent again, what has been
   * received of its output is dropped. For `GuestConnection.attach`. Throws `ProtocolError` when bytes are missing.
   */
  goOn(connection: ProcessLink, { stdinReceived, outputOffset }: ProcessStart): GuestProcess {
    const next = new GuestProcess(connection, this.pid, this.#handlers);
    const isWhole = stdinReceived >= this.#acknowledgedBytes && stdinReceived <= this.#sentBytes;
    if (!isWhole || outputOffset > this.#receivedBytes)
      throw new ProtocolError("bytes of a process are missing");
    next.#receivedBytes = this.#receivedBytes;
    next.#repeatedBytes = this.#receivedBytes - outputOffset;
    next.#resentBytes = this.#sentBytes - stdinReceived;
    next.#sentBytes = next.#acknowledgedBytes = stdinReceived;
    next.#queue = [...without(this.#unacknowledged, stdinReceived - this.#acknowledgedBytes), ...this.#queue];
    next.#eofQueued = this.#eofQueued;
    if (this.#size !== undefined) next.resize(this.#size.cols, this.#size.rows);
    next.#flush();
    return next;
  }

  /**
   * Queues bytes for stdin (or the terminal). False when the process has not taken enough yet: wait for `onStdinDrain`.
   * Bytes for a process that has closed its stdin are dropped.
   */
  writeStdin(bytes: Uint8Array): boolean {
    if (this.#ended || this.#eofQueued) return true;
    if (bytes.length > 0) this.#queue.push(bytes);
    this.#flush();
    return this.#queue.length === 0;
  }

  /** End of input, after everything queued. With a terminal it has no effect: send 0x04 instead. */
  closeStdin(): void {
    if (this.#eofQueued || this.#ended) return;
    this.#eofQueued = true;
    this.#flush();
  }

  /** Sends a signal to this one process. Ignored once it has exited. */
  signal(signal: number): void {
    if (!this.#ended)
      this.#connection.writeFrames(new FrameBuilder(16).begin(GuestFrame.signal).u32(signal).end());
  }

  resize(cols: number, rows: number): void {
    if (this.#ended) return;
    this.#size = { cols, rows };
    this.#connection.writeFrames(new FrameBuilder(16).begin(GuestFrame.resize).u16(cols).u16(rows).end());
  }

  /** Bytes of input that an earlier connection had sent and that were sent again on this one. */
  get resentBytes(): number {
    return this.#resentBytes;
  }

  pause(): void {
    if (!this.#ended) this.#connection.pause();
  }

  resume(): void {
    if (!this.#ended) this.#connection.resume();
  }

  /** Closes the connection; the guest kills the process group. `onLost` is called unless it had ended. */
  destroy(): void {
    if (!this.#ended) this.#connection.destroy();
  }

  onFrame(type: number, payload: Buffer): void {
    switch (type) {
      case GuestFrame.stdout:
        this.#output(payload, (chunk) => this.#handlers.onStdout?.(chunk));
        return;
      case GuestFrame.stderr:
        this.#output(payload, (chunk) => this.#handlers.onStderr?.(chunk));
        return;
      case GuestFrame.pty:
        this.#output(payload, (chunk) => this.#handlers.onPty?.(chunk));
        return;
      case GuestFrame.stdinTaken:
        this.#onTaken(payload);
        return;
      case GuestFrame.exited: {
        const exit = decodeExit(payload);
        this.#end();
        this.#handlers.onExit(exit);
        return;
      }
      default:
        throw new ProtocolError("unexpected frame from a process");
    }
  }

  onClosed(error: GuestConnectionError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#handlers.onLost(error);
  }

  #output(chunk: Buffer, handle: (chunk: Buffer) => void): void {
    const repeated = Math.min(this.#repeatedBytes, chunk.length);
    this.#repeatedBytes -= repeated;
    this.#receivedBytes += chunk.length - repeated;
    if (repeated < chunk.length) handle(chunk.subarray(repeated));
  }

  #onTaken(payload: Buffer): void {
    if (payload.length !== 4) throw new ProtocolError("bad STDIN_TAKEN");
    this.#windowBytes += payload.readUInt32LE(0);
    if (this.#windowBytes > stdinWindowBytes) throw new ProtocolError("more stdin taken than was sent");
    const taken = payload.readUInt32LE(0);
    this.#acknowledgedBytes += taken;
    this.#unacknowledged = without(this.#unacknowledged, taken);
    const wasWaiting = this.#queue.length > 0;
    this.#flush();
    if (wasWaiting && this.#queue.length === 0) this.#handlers.onStdinDrain?.();
  }

  #flush(): void {
    while (this.#windowBytes > 0) {
      const head = this.#queue[0];
      if (head === undefined) break;
      const size = Math.min(head.length, this.#windowBytes, dataChunkBytes);
      this.#connection.writeFrames(encodeFrame(GuestFrame.stdin, head.subarray(0, size)));
      this.#windowBytes -= size;
      this.#sentBytes += size;
      this.#unacknowledged.push(head.subarray(0, size));
      if (size === head.length) this.#queue.shift();
      else this.#queue[0] = head.subarray(size);
    }
    if (this.#eofQueued && !this.#eofSent && this.#queue.length === 0) {
      this.#eofSent = true;
      this.#connection.writeFrames(encodeFrame(GuestFrame.stdinEof));
    }
  }

  #end(): void {
    this.#ended = true;
    this.#queue = [];
    this.#unacknowledged = [];
    this.#connection.handBack();
  }
}

const noLink: ProcessLink = {
  writeFrames: () => true,
  pause: () => undefined,
  resume: () => undefined,
  destroy: () => undefined,
  handBack: () => undefined,
};

/** The chunks without their first bytes. */
function without(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let left = bytes;
  const rest: Uint8Array[] = [];
  for (const chunk of chunks) {
    if (left < chunk.length) rest.push(chunk.subarray(left));
    left = Math.max(0, left - chunk.length);
  }
  return rest;
}
