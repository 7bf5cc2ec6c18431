// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type LinkStream, resetReason, type StreamHandlers } from "@space/wire";

/**
 * What follows the head of a refused operation: read and thrown away, up to the body that a gateway may send along
 * . A gateway that sends more is reset.
 */
export class RefusedBody implements StreamHandlers {
  readonly #stream: LinkStream;
  #leftBytes: number;

  constructor(stream: LinkStream, limitBytes: number) {
    this.#stream = stream;
    this.#leftBytes = limitBytes;
  }

  onData(chunk: Buffer): void {
    this.#leftBytes -= chunk.length;
    if (this.#leftBytes < 0) this.#stream.reset(resetReason.protocol);
    else this.#stream.consumed(chunk.length);
  }

  onEnd(): void {
    // Both sides have ended: the stream is over.
  }

  onReset(): void {
    // The gateway does not wait for the end.
  }
}
