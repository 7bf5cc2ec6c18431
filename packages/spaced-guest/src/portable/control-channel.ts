// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  encodeFrame,
  FrameBuilder,
  frameHeaderBytes,
  maxFrameBytes,
  PayloadReader,
  ProtocolError,
} from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { readExactly, writeWhole } from "./descriptors.ts";
import { errnoOf } from "./libc.ts";

/** Descriptors that a starting process has from the launcher. */
export const ControlFd = { channel: 3, listener: 4, userNamespace: 5 } as const;

/** What is said over the channel between the launcher and a process that it starts. */
export const ControlFrame = {
  /** To the first stage: a START or HOST record as it came. */
  record: 1,
  /** To a guest's second stage. */
  guest: 2,
  /** From it: listening, or about to become a bridge's program. */
  ready: 3,
  failed: 4,
} as const;

/** What the second stage needs to know. */
export interface GuestOrders {
  readonly activationId: string;
  readonly secret: Buffer;
  readonly fileLimitBytes: number;
  readonly filter: Buffer;
}

export function encodeGuestOrders(orders: GuestOrders): Buffer {
  const frame = new FrameBuilder(4096)
    .begin(ControlFrame.guest)
    .string(orders.activationId)
    .raw(orders.secret);
  return frame.u64(BigInt(orders.fileLimitBytes)).bytes(orders.filter).end().finish();
}

export function decodeGuestOrders(reader: PayloadReader): GuestOrders {
  const activationId = reader.string();
  const secret = Buffer.from(reader.fixed(32));
  return { activationId, secret, fileLimitBytes: Number(reader.u64()), filter: Buffer.from(reader.bytes()) };
}

/** The next frame from the launcher, which must be of this type. Blocks: nothing else goes on in a starting process. */
export function receiveOrders(type: number): PayloadReader {
  const header = readExactly(ControlFd.channel, frameHeaderBytes);
  const length = header.readUInt32LE(0);
  if (length > maxFrameBytes || header[4] !== type) throw new ProtocolError("unexpected order");
  return new PayloadReader(readExactly(ControlFd.channel, length));
}

export function reportReady(): void {
  writeWhole(ControlFd.channel, encodeFrame(ControlFrame.ready));
}

/** Tells the launcher at which step the start failed, and ends this process. */
export function failStart(error: unknown): never {
  const step = error instanceof GuestError ? error.step : "start";
  const report = new FrameBuilder(64)
    .begin(ControlFrame.failed)
    .u32(errnoOf(error))
    .string(step)
    .end()
    .finish();
  writeWhole(ControlFd.channel, report);
  process.exit(1);
}
