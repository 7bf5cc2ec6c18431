// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** what was to go on cannot, byte for byte. The gateway is told; nothing is guessed. */
export class StreamLost extends Error {
  override readonly name: string = "StreamLost";
}
