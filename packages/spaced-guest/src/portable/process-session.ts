// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { constants } from "node:os";
import { encodeFrame, FrameBuilder, PayloadReader } from "../frames.ts";
import { encodeStarted, GuestFrame, stdinWindowBytes } from "../guest-protocol.ts";
import { waitingBytes } from "./descriptors.ts";
import type { Frame, PeerConnection } from "./peer-connection.ts";
import type { ProcessOutput, StartedChild } from "./process-start.ts";

const outputFrameBytes = 32 * 1024;
/** Output is awaited this long after the exit while a child holds the pipes. */
const lingerMs = 100;
/** And an exit this long for somebody to attach. */
const detachedMs = 10 * 60 * 1000;
const signals: Readonly<Record<string, number | undefined>> = constants.signals;

interface Exit {
  readonly bySignal: boolean;
  readonly value: number;
}

interface Output extends ProcessOutput {
  readonly type: number;
  open: boolean;
  /** What may still be sent once lingering. */
  remaining: number;
}

/** One process, its pipes, and the connection that owns it now, if any. */
export class ProcessSession {
  readonly pid: number;
  readonly #started: StartedChild;
  readonly #outputs: readonly Output[];
  readonly #onForgotten: () => void;
  #connection: PeerConnection | undefined;
  #exit: Exit | undefined;
  #exitSent = false;
  #timer: NodeJS.Timeout | undefined;
  /** Frames of output that may not have left when their connection ended, and the offset of the first. */
  #unsent: { readonly frame: Buffer; readonly bytes: number }[] = [];
  #sentBytes = 0;
  #stdinReceived = 0;
  #stdinOpen: boolean;
  #unacknowledged = 0;

  /** `onForgotten` is called when nobody can attach any more. */
  constructor(started: StartedChild, onForgotten: () => void) {
    this.pid = started.pid;
    this.#started = started;
    this.#onForgotten = onForgotten;
    this.#stdinOpen = started.stdin !== undefined;
    const types = [GuestFrame.stdout, GuestFrame.stderr];
    this.#outputs = started.outputs.map((output, index) => {
      const type = types[index] ?? GuestFrame.stderr;
      return this.#watch({ ...output, type, open: true, remaining: Number.POSITIVE_INFINITY });
    });
    started.stdin?.on("error", () => this.#closeStdin()); // the process closed its end
    started.child.once("exit", (code, signal) => {
      const value = signal === null ? (code ?? 0) : (signals[signal] ?? 0);
      this.#noteExit({ bySignal: signal !== null, value });
    });
  }

  /** True while its connection was closed by a rekey and no other has taken it over. */
  get waiting(): boolean {
    return this.#connection === undefined;
  }

  /** Serves the process until it has exited and all is sent, or the connection ended. Whether the connection goes on. */
  async serve(connection: PeerConnection, wasRekeyed: () => boolean): Promise<boolean> {
    this.#connection = connection;
    this.#unacknowledged = 0; // what is still queued is no longer acknowledged to anyone
    const kept = this.#unsent;
    this.#unsent = [];
    const position = { stdinReceived: this.#stdinReceived, outputOffset: this.#sentBytes };
    connection.socket.write(encodeStarted({ pid: this.pid, ...position }));
    for (const { frame, bytes } of kept) this.#write(frame, bytes);
    connection.socket.on("drain", this.#resume);
    this.#resume();
    if (this.#exit !== undefined) this.#startLinger();
    this.#finishIfDone();
    const isOver = (): boolean => this.#exitSent;
    for (
      let frame = await connection.next(isOver);
      frame !== undefined;
      frame = await connection.next(isOver)
    ) {
      if (!this.#take(frame, connection)) connection.close();
    }
    connection.socket.off("drain", this.#resume);
    if (wasRekeyed()) this.#detach();
    else if (this.#exitSent) this.#forget();
    else this.#abandon();
    return !connection.closed;
  }

  // ---- from the host

  #take({ type, payload }: Frame, owner: PeerConnection): boolean {
    switch (type) {
      case GuestFrame.stdin:
        return this.#takeStdin(payload, owner);
      case GuestFrame.stdinEof:
        this.#started.stdin?.end();
        this.#stdinOpen = false;
        return true;
      case GuestFrame.signal:
        this.#signal(new PayloadReader(payload).u32());
        return true;
      case GuestFrame.resize:
        return payload.length === 4; // there is no terminal to resize
      default:
        return false;
    }
  }

  #takeStdin(bytes: Buffer, owner: PeerConnection): boolean {
    if (bytes.length > stdinWindowBytes - this.#unacknowledged) return false;
    this.#unacknowledged += bytes.length;
    this.#stdinReceived += bytes.length;
    const taken = (): void => {
      if (this.#connection !== owner || owner.closed) return;
      this.#unacknowledged -= bytes.length;
      owner.socket.write(new FrameBuilder(16).begin(GuestFrame.stdinTaken).u32(bytes.length).end().finish());
    };
    const { stdin } = this.#started;
    if (this.#stdinOpen && stdin !== undefined) stdin.write(bytes, taken);
    else taken();
    return true;
  }

  #closeStdin(): void {
    this.#stdinOpen = false;
    this.#started.stdin?.destroy();
  }

  #signal(number: number): void {
    if (this.#exit !== undefined) return;
    try {
      process.kill(this.pid, number);
    } catch {
      // no such signal
    }
  }

  // ---- to the host

  #watch(output: Output): Output {
    const end = (): void => {
      output.open = false;
      output.socket.destroy();
      this.#finishIfDone();
    };
    output.socket.pause();
    output.socket.on("data", (chunk: Buffer) => {
      const bytes = chunk.subarray(0, output.remaining);
      output.remaining -= bytes.length;
      for (let at = 0; at < bytes.length; at += outputFrameBytes) {
        const piece = bytes.subarray(at, at + outputFrameBytes);
        this.#write(encodeFrame(output.type, piece), piece.length);
      }
      if (output.remaining <= 0) end();
    });
    for (const event of ["end", "error"]) output.socket.once(event, end);
    return output;
  }

  #write(frame: Buffer, bytes: number): void {
    const connection = this.#connection;
    this.#unsent.push({ frame, bytes });
    if (connection === undefined || connection.closed) return;
    const more = connection.socket.write(frame, (error) => {
      if (error || this.#connection !== connection) return;
      this.#unsent.shift();
      this.#sentBytes += bytes;
    });
    if (!more) for (const { socket } of this.#outputs) socket.pause(); // a slow host slows the process
  }

  readonly #resume = (): void => {
    if (this.#connection?.socket.writableNeedDrain !== false) return;
    for (const { open, socket } of this.#outputs) if (open) socket.resume();
  };

  // ---- the end

  #noteExit(exit: Exit): void {
    this.#exit = exit;
    this.#closeStdin();
    if (this.#connection !== undefined) this.#startLinger();
    else this.#timer = setTimeout(() => this.#forget(), detachedMs);
    this.#finishIfDone();
  }

  /** A child of the dead process may hold its pipes: what it has written by then is sent, no more. */
  #startLinger(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      for (const output of this.#outputs) {
        if (!output.open) continue;
        output.remaining = waitingBytes(output.fd) + output.socket.readableLength;
        if (output.remaining === 0) {
          output.open = false;
          output.socket.destroy();
        }
      }
      this.#finishIfDone();
    }, lingerMs);
  }

  #finishIfDone(): void {
    const connection = this.#connection;
    if (this.#exit === undefined || this.#exitSent || connection === undefined || connection.closed) return;
    if (this.#outputs.some(({ open }) => open)) return;
    const { bySignal, value } = this.#exit;
    this.#exitSent = true;
    const exited = new FrameBuilder(16).begin(GuestFrame.exited).u8(bySignal ? 1 : 0);
    connection.socket.write(exited.u32(value).end().finish());
    connection.wake();
  }

  /** The process goes on, its pipes unread, until a connection of the new identity comes. */
  #detach(): void {
    this.#connection = undefined;
    this.#exitSent = false; // it is said anew, should it not have come
    clearTimeout(this.#timer);
    for (const { socket } of this.#outputs) socket.pause();
    if (this.#exit !== undefined) this.#timer = setTimeout(() => this.#forget(), detachedMs);
  }

  /** The host is gone: nothing of the process stays. */
  #abandon(): void {
    if (this.#exit === undefined) {
      for (const target of [-this.pid, this.pid]) {
        try {
          process.kill(target, "SIGKILL");
        } catch {
          // no such group: it has not made its own yet, or is gone
        }
      }
    }
    this.#forget();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#connection = undefined;
    this.#closeStdin();
    for (const output of this.#outputs) {
      output.open = false;
      output.socket.destroy();
    }
    this.#onForgotten();
  }
}
