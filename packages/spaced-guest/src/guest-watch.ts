// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { ProtocolError } from "./frames.ts";
import type { GuestConnectionError } from "./guest-error.ts";
import type { FrameSink, ProcessLink } from "./guest-process.ts";
import { decodeWatchEvent, GuestFrame, type WatchEvent } from "./guest-protocol.ts";

/** Where a watch's events go, in order. */
export interface WatchHandlers {
  onEvent(event: WatchEvent): void;
  /** Events have been lost: the watch goes on with those after. */
  onOverflow(): void;
  /** The connection has ended, and the watch with it. */
  onLost(error: GuestConnectionError): void;
}

/** A folder that is watched. It owns its connection. `pause` lets events wait in the guest's kernel, within its limit. */
export class GuestWatch implements FrameSink {
  readonly #connection: ProcessLink;
  readonly #handlers: WatchHandlers;

  /** Made by `GuestConnection.watch` only. */
  constructor(connection: ProcessLink, handlers: WatchHandlers) {
    this.#connection = connection;
    this.#handlers = handlers;
  }

  pause(): void {
    this.#connection.pause();
  }

  resume(): void {
    this.#connection.resume();
  }

  /** Ends the watch; `onLost` is called. */
  destroy(): void {
    this.#connection.destroy();
  }

  onFrame(type: number, payload: Buffer): void {
    switch (type) {
      case GuestFrame.event:
        return this.#handlers.onEvent(decodeWatchEvent(payload));
      case GuestFrame.overflow:
        return this.#handlers.onOverflow();
      default:
        throw new ProtocolError("unexpected frame from a watch");
    }
  }

  onClosed(error: GuestConnectionError): void {
    this.#handlers.onLost(error);
  }
}
