// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { encodeFrame, FrameBuilder, GuestFrame } from "@space/spaced-guest";

export interface FakeWatch {
  readonly path: string;
  readonly flags: number;
  /** Whether its connection is still there. */
  open: boolean;
  tell(kind: number, name: string): void;
  overflow(): void;
}

/** A folder of a fake guest that is watched over this connection: what happens in it is what the test tells. */
export function fakeWatch(asked: Pick<FakeWatch, "path" | "flags">, stream: Duplex): FakeWatch {
  const event = (kind: number, name: string): Buffer =>
    new FrameBuilder().begin(GuestFrame.event).u8(kind).string(name).u8(0).end().finish();
  const watch: FakeWatch = {
    ...asked,
    open: true,
    tell: (kind, name) => void stream.write(event(kind, name)),
    overflow: () => void stream.write(encodeFrame(GuestFrame.overflow)),
  };
  stream.once("close", () => {
    watch.open = false;
  });
  return watch;
}
