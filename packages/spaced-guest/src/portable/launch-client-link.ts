// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { FrameBuilder, FrameParser, PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { LaunchFrame } from "../launch-protocol.ts";
import { errnoOf } from "./libc.ts";

const maxUnsentBytes = 4 * 1024 * 1024;

/** A worker daemon's connection to the launcher. One that breaks the protocol or does not read is dropped. */
export class LaunchClientLink {
  readonly #socket: Socket;

  constructor(socket: Socket, onRequest: (type: number, payload: Buffer) => void, onClosed: () => void) {
    this.#socket = socket;
    const parser = new FrameParser(onRequest);
    socket.on("data", (chunk: Buffer) => {
      try {
        parser.push(chunk);
      } catch {
        socket.destroy(); // not a launch client
      }
    });
    socket.on("error", () => undefined); // "close" follows
    socket.once("close", onClosed);
  }

  done(requestId: number): Promise<void> {
    return this.send(new FrameBuilder(16).begin(LaunchFrame.done).u32(requestId).end());
  }

  started(requestId: number, pid: number, startTime: bigint): Promise<void> {
    return this.send(
      new FrameBuilder(32).begin(LaunchFrame.started).u32(requestId).u32(pid).u64(startTime).end(),
    );
  }

  failed(requestId: number, error: unknown): Promise<void> {
    const step = error instanceof GuestError ? error.step : "record";
    const errno = error instanceof GuestError ? errnoOf(error) : 22;
    return this.send(
      new FrameBuilder(64).begin(LaunchFrame.failed).u32(requestId).u32(errno).string(step).end(),
    );
  }

  /** Resolves when it has left, or never will. */
  send(frame: FrameBuilder): Promise<void> {
    const { writable, writableLength } = this.#socket;
    if (!writable) return Promise.resolve();
    if (writableLength > maxUnsentBytes) {
      this.#socket.destroy();
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#socket.write(frame.finish(), () => resolve()));
  }
}

export function requestIdOf(payload: Buffer): number {
  return new PayloadReader(payload).u32();
}
