// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Longest frame header: two bytes, eight of length, four of mask. */
const longestHeaderBytes = 14;
/** RFC 6455 and its registry: the service is restarted; the client may connect again. */
const serviceRestart = 1012;

/**
 * Follows the frames that a WebSocket server sends (RFC 6455 section 5.2), in constant memory, just far enough to know
 * where one ends: a close frame of the gateway's may be put in there and nowhere else.
 */
export class WebSocketFrames {
  readonly #header = Buffer.alloc(longestHeaderBytes);
  #headerSeen = 0;
  #payloadLeft = 0;

  /** Whether the next byte begins a frame. */
  get between(): boolean {
    return this.#headerSeen === 0 && this.#payloadLeft === 0;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#payloadLeft > 0) {
        const step = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payloadLeft -= step;
        at += step;
      } else {
        this.#headerByte(chunk[at] ?? 0);
        at += 1;
      }
    }
  }

  #headerByte(byte: number): void {
    this.#header[this.#headerSeen] = byte;
    this.#headerSeen += 1;
    if (this.#headerSeen < 2) return;
    const second = this.#header[1] ?? 0;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const maskBytes = (second & 0x80) === 0 ? 0 : 4;
    if (this.#headerSeen < 2 + lengthBytes + maskBytes) return;
    this.#headerSeen = 0;
    this.#payloadLeft = lengthBytes === 0 ? short : this.#longLength(lengthBytes);
  }

  /** A length that no number holds exactly is as good as endless. */
  #longLength(bytes: 2 | 8): number {
    return bytes === 2 ? this.#header.readUInt16BE(2) : Number(this.#header.readBigUInt64BE(2));
  }
}

/** A server's close frame: 1012, without a reason. */
export function restartClose(): Buffer {
  const frame = Buffer.from([0x88, 2, 0, 0]);
  frame.writeUInt16BE(serviceRestart, 2);
  return frame;
}
