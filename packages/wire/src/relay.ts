// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { LinkStream, StreamHandlers } from "./link-stream.ts";

/**
 * Handlers that pass everything from one stream to another and give back credit only as fast as the other takes it.
 * `onHead` is the relay's own business and is not set. The other stream's `onDrain` must call `onDrainOfTarget`.
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
