// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { frameHeaderBytes, frameType } from "@space/wire";

/** Calls back for each frame of bytes that hold whole frames, as links write them. */
export function eachFrame(
  bytes: Buffer,
  onFrame: (type: number, stream: number, payload: Buffer) => void,
): void {
  let at = 0;
  while (bytes.length - at >= frameHeaderBytes) {
    const length = bytes.readUInt32BE(at);
    const end = at + frameHeaderBytes + length;
    onFrame(bytes.readUInt8(at + 4), bytes.readUInt32BE(at + 5), bytes.subarray(at + frameHeaderBytes, end));
    at = end;
  }
}

export const isOpening = (type: number): boolean => type === frameType.open || type === frameType.openEnd;
export const isHead = (type: number): boolean => type === frameType.head || type === frameType.headEnd;
export const isData = (type: number): boolean => type === frameType.data;
export const isOver = (type: number): boolean => type === frameType.reset || type === frameType.end;
