// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { frameHeaderBytes, frameType } from "@space/wire";

/** Told of one frame; its payload is what lies between these two positions. */
export type OnFrame = (type: number, stream: number, from: number, to: number) => void;

/** Calls back for each frame of bytes that hold whole frames, as links write them. */
export function eachFrame(bytes: Buffer, onFrame: OnFrame): void {
  for (let at = 0; bytes.length - at >= frameHeaderBytes; ) {
    const from = at + frameHeaderBytes;
    const to = from + bytes.readUInt32BE(at);
    onFrame(bytes.readUInt8(at + 4), bytes.readUInt32BE(at + 5), from, to);
    at = to;
  }
}

export const isOpening = (type: number): boolean => type === frameType.open || type === frameType.openEnd;
export const isHead = (type: number): boolean => type === frameType.head || type === frameType.headEnd;
export const isData = (type: number): boolean => type === frameType.data;
export const isOver = (type: number): boolean => type === frameType.reset || type === frameType.end;
