// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { frameHeaderBytes, frameType } from "@space/wire";

/** Told of one frame; its payload is what lies between these two positions. */
export type OnFrame = (type: number, stream: number, from: number, to: number) => void;

/** Calls back for each frame of bytes that hold whole frames, as links write them. */
export function eachFrame(bytes: Buffer, onFrame: OnFrame): void {
  for (let at = 0; bytes.length - at >= frameHeaderBytes; ) {
    const from = at + frameHeaderBytes;
    const to = from + wordAt(bytes, at);
    onFrame(bytes[at + 4] ?? 0, wordAt(bytes, at + 5), from, to);
    at = to;
  }
}

/** 32 bits, the most significant byte first. */
function wordAt(bytes: Buffer, at: number): number {
  const [high = 0, b = 0, c = 0, d = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
  return high * 0x1000000 + ((b << 16) | (c << 8) | d);
}

export const isOpening = (type: number): boolean => type === frameType.open || type === frameType.openEnd;
export const isHead = (type: number): boolean => type === frameType.head || type === frameType.headEnd;
export const isData = (type: number): boolean => type === frameType.data;
export const isOver = (type: number): boolean => type === frameType.reset || type === frameType.end;
